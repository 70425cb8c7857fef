"""Nothing opens when Squid, the front or a resolver is taken away; service comes back by itself.

On machines where IPAddressDeny= acts beside the packet rules.
"""

from typing import cast

import pytest

from tests.system.bed import internet_map
from tests.system.bed.internet import Internet
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.bed.nspawn import Profile
from tests.system.bed.session import Session
from tests.system.outgoing import a_server
from tests.system.survival import (
    LISTEN,
    OUTSIDE,
    RULES,
    SERVERS,
    Journal,
    changed,
    own_address,
    play,
)

CONNECTIONS = 500  # at least, and as many as there come while something changes
COMMON = "/usr/lib/mcpwrap/squid/common.conf"
SPLICING, INTERCEPTING = "mcpwrap-squid-proxy@1", "mcpwrap-squid-intercept@1"
INSTANCES = pytest.mark.parametrize(
    ("unit", "server"), [(SPLICING, "probe"), (INTERCEPTING, "look")]
)


CONNECTED = (Profile.BPF, SERVERS)


@INSTANCES
def test_a_killed_squid_comes_back(machine: Machine, unit: str, server: str) -> None:
    machine.announce(unit)
    with machine.session(server) as session:
        assert play(session, "status()") == 200
        journal = Journal(machine)
        machine.as_root(f"systemctl kill --signal=KILL {unit}")
        journal.await_line(f"{unit}.service: Started")
        expect_service(session)


@INSTANCES
@pytest.mark.parametrize(
    "mistake",
    [
        "this is no directive",  # status 1
        "acl broken urlpath_regex [",  # status 0, and the list is empty
    ],
)
def test_a_broken_file_is_never_loaded(
    machine: Machine, internet: Internet, unit: str, server: str, mistake: str
) -> None:
    """First by a reload: what was before serves on. Then Squid is killed: nobody serves at all."""
    machine.announce(unit)
    file = f"/var/lib/mcpwrap/squid/{unit.removeprefix('mcpwrap-squid-').replace('@', '-')}.conf"
    other = {"probe": "look", "look": "probe"}[server]
    broken = f"{machine.read(file)}{mistake}\n"
    with machine.session(server) as session, machine.session(other) as beside:
        play(session, "started.update(stream=Events(400, 0.05))")
        with changed(machine, file, broken):
            machine.as_root(f"systemctl reload {unit}", status=1)
            expect_service(session)
            assert play(session, "started['stream'].said()['error']") == ""
            journal = Journal(machine)
            machine.as_root(f"systemctl kill --signal=KILL {unit}")
            journal.await_line(f"{unit}.service: .*Failed with result 'exit-code'")
            internet.forget()
            expect_nothing_open(machine, session, own_address(machine, server))
            assert internet.packets() == []
            assert play(beside, "status()") == 200  # the other instance has nothing to do with it
            journal = Journal(machine)
        journal.await_line(f"{unit}.service: Started")  # mended, and nobody did anything else
        expect_service(session)
        machine.write(file, broken)
        assert "Squid" in machine.apply()  # the other way to mend it
        expect_service(session)


def expect_service(session: Session) -> None:
    """See that the server reaches what it may, and nothing else."""
    assert play(session, "status()") == 200
    assert play(session, "status(host='other.test')") == "CONNECT 403"


def expect_nothing_open(machine: Machine, session: Session, own: str) -> None:
    """See that without Squid there is no way out, and that nobody else takes its place."""
    assert play(session, "status()") == "ConnectionRefusedError"
    assert play(session, "reached([['198.51.100.10', 443], ['198.51.100.10', 80]])") == []
    squat = f'exec python3 -c "{LISTEN.format(where=(own, 3128))}"'
    with machine.session("", user="alice", command=squat) as squatter:
        assert squatter.read_line() == "up"
        assert play(session, f"reached([['{own}', 3128]])") == []  # she gets no word through
        squatter.send({})


@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        ("no_such_directive on", "unrecognized: 'no_such_directive'"),
        ("connect_timeout ten parsecs", "ERROR: No digits were found"),
        ("acl broken nosuchtype x", "invalid acl type 'nosuchtype'"),
        ("acl broken urlpath_regex [", "invalid regular expression"),  # to Squid 5 no failure
    ],
)
def test_what_squid_finds_fault_with_is_refused_by_apply(
    machine: Machine, mistake: str, named: str
) -> None:
    """The operator has edited the installed part, and then allows another host."""
    wider = SERVERS.replace('["api.good.test"]', '["api.good.test", "other.test"]', 1)
    with machine.session("probe") as session:
        assert play(session, "status(host='other.test')") == "CONNECT 403"
        with changed(machine, COMMON, f"{machine.read(COMMON)}{mistake}\n"):
            machine.configure(wider)
            with pytest.raises(CommandFailedError) as refused:
                machine.apply()
            assert named.lower() in str(refused.value).lower()  # releases differ in that
            assert "the old configuration stays" in str(refused.value)
            assert play(session, "status()") == 200
            assert play(session, "status(host='other.test')") == "CONNECT 403"
        machine.apply()
        assert play(session, "status(host='other.test')") == 200  # the twin: mended, it is allowed
        machine.configure(SERVERS)
        machine.apply()
        assert play(session, "status(host='other.test')") == "CONNECT 403"


def test_a_killed_front_comes_back(machine: Machine) -> None:
    machine.announce("mcpwrap-front")
    with machine.session("probe") as session:
        assert play(session, "ask_directly()") == 200
        journal = Journal(machine)
        machine.as_root("systemctl kill --signal=KILL mcpwrap-front")
        journal.await_line("mcpwrap-front.service: Started")
        assert play(session, "ask_directly()") == 200


# ------------------------------------------------------------------ what changes while it runs
ASK_RESOLVER = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(2)
query = b"..\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\3api\\4good\\4test\\0\\0\\1\\0\\1"
try:
    s.sendto(query, ("{address}", 53))
    print("answered", len(s.recv(512)) > len(query))
except OSError as error: print(type(error).__name__)
"""
OTHER_RESOLVER = "198.51.100.54"


def asked(internet: Internet) -> set[str]:
    """Return which resolvers were sent something."""
    return {packet.address for packet in internet.packets() if packet.port == internet_map.DNS_PORT}


def answer(machine: Machine, resolver: str) -> str:
    """Return what comes of asking a resolver as Squid's account."""
    script = ASK_RESOLVER.format(address=resolver)
    argv = OUTSIDE.format("mcpwrap-proxy", script)
    return machine.as_root(argv).out.strip()


def test_squid_follows_the_resolvers_of_the_machine(machine: Machine, internet: Internet) -> None:
    """And a stream that is open goes on meanwhile."""
    for name in ("first", "second", "third"):
        internet.add_name(f"{name}.cdn.test", "198.51.100.11")
    machine.configure(SERVERS.replace('"api.good.test"]', '"api.good.test", "*.cdn.test"]', 1))
    machine.apply()
    with machine.session("probe") as session:
        play(session, "started.update(stream=Events(4000, 0.05))")
        for name, now, before in (
            ("first", OTHER_RESOLVER, internet_map.RESOLVER),
            ("second", internet_map.RESOLVER, OTHER_RESOLVER),
        ):
            journal = Journal(machine)
            machine.write("/etc/resolv.conf", f"nameserver {now}\n")
            journal.await_line("mcpwrap-resolvers.service: Finished")
            internet.forget()
            assert play(session, f"status(host='{name}.cdn.test')") == 200
            assert asked(internet) == {now}
            internet.forget()
            assert (answer(machine, now), answer(machine, before)) == (
                "answered True", "PermissionError",
            )  # fmt: skip
            assert asked(internet) == {now}
        stream = play(session, "started['stream'].said()")
        assert isinstance(stream, dict)
        assert (stream["in order"], stream["error"]) == (True, "")
    machine.configure(SERVERS)
    machine.apply()


def test_other_resolvers_do_not_end_a_squid_whose_file_is_broken(
    machine: Machine, internet: Internet
) -> None:
    """A signal to read its files would."""
    machine.announce("mcpwrap-(resolvers|squid-)")
    file = "/var/lib/mcpwrap/squid/proxy-1.conf"
    with machine.session("probe") as session:
        with changed(machine, file, f"{machine.read(file)}this is no directive\n"):
            journal = Journal(machine)
            machine.write("/etc/resolv.conf", f"nameserver {OTHER_RESOLVER}\n")
            journal.await_line("mcpwrap-resolvers.service: .*Failed with result")
            assert play(session, "status()") == 200
        journal = Journal(machine)
        machine.write("/etc/resolv.conf", f"nameserver {internet_map.RESOLVER}\n")
        journal.await_line("mcpwrap-resolvers.service: Finished")
        assert play(session, "status()") == 200


WAITING = "        ip daddr @hold tcp dport 3128 tcp flags & (syn | ack) == syn drop\n"
DIRECTLY = "[(began := time.monotonic()) and ask_directly(), time.monotonic() - began]"


def test_who_comes_by_the_front_waits_while_ports_of_squid_are_closed(machine: Machine) -> None:
    own = own_address(machine, "probe")
    hold = f"nft add element inet mcpwrap hold '{{ {own} timeout 4s }}'"
    with machine.session("probe") as session:
        machine.as_root(hold)
        status, took_s = cast(list[float], play(session, DIRECTLY))
        assert status == 200
        assert took_s > 0.9  # the kernel tries again after a second
        with machine.unwatched(), changed(machine, RULES, machine.read(RULES).replace(WAITING, "")):
            machine.as_root(f"systemctl reload mcpwrap-nft; {hold}")
            assert cast(list[float], play(session, DIRECTLY))[1] < 0.9
        machine.as_root("systemctl reload mcpwrap-nft")


def expect_all_came_through(session: Session, at_least: int) -> None:
    """See that of a crowd of new connections, when it has ended, none has failed."""
    said = play(session, "started['crowd'].said()")
    while isinstance(said, dict) and said["alive"]:
        said = play(session, "started['crowd'].said()")
    print(said)
    assert isinstance(said, dict)
    assert (said["failed"], said["errors"]) == (0, [])
    assert said["done"] >= at_least


def test_five_more_servers_disturb_nobody(machine: Machine) -> None:
    """Streams of three ways out stay open, and new connections come all the time."""
    config = SERVERS
    with (
        machine.session("probe") as session,
        machine.session("neighbour") as neighbour,
        machine.session("look") as looking,
    ):
        for one in (session, neighbour, looking):
            play(one, "started.update(stream=Events(100000, 0.1))")
        plain = "socket.create_connection(('api.good.test', 443), 10)"
        play(neighbour, f"started.update(by_front=Events(100000, 0.1, plain={plain}))")
        play(session, f"started.update(crowd=Crowd({CONNECTIONS}))")
        play(looking, f"started.update(crowd=Crowd({CONNECTIONS // 10}, 1))")
        play(neighbour, f"started.update(crowd=Crowd({CONNECTIONS // 10}, 1, plainly))")
        for number in range(5):
            opens = "\nintercept = true" if number % 2 else ""
            config += a_server(f"more{number}", f'egress = ["api.good.test"]{opens}')
            machine.configure(config)
            machine.apply()
        crowds = {session: CONNECTIONS, looking: CONNECTIONS // 10, neighbour: CONNECTIONS // 10}
        for one in crowds:
            play(one, "setattr(started['crowd'], 'enough', True)")
        for one, least in crowds.items():
            expect_all_came_through(one, least)
        streams = ((session, "stream"), (neighbour, "stream"), (looking, "stream"))
        for one, name in (*streams, (neighbour, "by_front")):
            said = play(one, f"started['{name}'].said()")
            print(said)
            assert isinstance(said, dict)
            assert (said["in order"], said["error"]) == (True, "")
            assert said["came"] > 20
    with machine.session("more0") as session, machine.session("more1") as looking:
        assert [play(one, "status()") for one in (session, looking)] == [200, 200]
    machine.configure(SERVERS)
    machine.apply()
