"""Loss of Squid, the front or a resolver: nothing opens, and service recovers by itself.

On machines where IPAddressDeny= acts beside the packet rules.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice

import pytest

from tests.shared import pace
from tests.system.bed import internet_map
from tests.system.bed.internet import Internet
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.bed.session import Session
from tests.system.support.egress_recovery import (
    LISTEN,
    RULES,
    SERVERS,
    Journal,
    await_that,
    booted,
    changed,
    is_fast,
    lives_for,
    outside,
    own_address,
)
from tests.system.support.egress_sessions import finished, play
from tests.system.support.servers import a_server
from tests.system.support.tiers import on_each_release, only_in_test_all

STAGE = booted
COMMON = "/usr/lib/mcpwrap/squid/common.conf"
SPLICING, INTERCEPTING = "mcpwrap-squid-proxy@1", "mcpwrap-squid-intercept@1"
INSTANCES = {SPLICING: "probe", INTERCEPTING: "look"}
NO_ANSWER_S = 0.7 * pace.PACE  # for addresses that answer at once, or never


@pytest.mark.parametrize(("unit", "server"), INSTANCES.items())
def test_a_killed_squid_comes_back(machine: Machine, unit: str, server: str) -> None:
    machine.announce(unit)
    with machine.session(server) as session:
        assert play(session, "status()") == 200
        journal = Journal(machine)
        machine.as_root(f"systemctl kill --signal=KILL {unit}")
        journal.await_line(f"{unit}.service: Started")
        expect_service(session)


OF_THE_OTHER_KIND = only_in_test_all(
    "the other kind of the same unit; the first row has Squid alone hang"
)


@pytest.mark.parametrize(
    ("unit", "server", "whom"),
    [
        (SPLICING, "probe", "main"),
        pytest.param(INTERCEPTING, "look", "all", marks=OF_THE_OTHER_KIND),
    ],
)
def test_a_squid_that_hangs_is_named_and_restarted(
    machine: Machine, unit: str, server: str, whom: str
) -> None:
    """Squid alone, or with it its watchdog process."""
    machine.announce(unit)
    problem = f"{unit}.service does not answer: it is restarted within 15 s"
    # The twin: one that answers lives for longer than one that hangs.
    await_that(machine, lives_for(unit, 12))
    with machine.session(server) as session:
        assert play(session, "status()") == 200

        def time_until_restarted() -> float:
            found = machine.call("hanging", "hang", f"{unit}.service", whom, pace.WAIT_S)
            assert found, "it still hangs"
            took_s, said = found
            print(f"restarted after {took_s:.1f} s")
            named = [state for state, status in said if status.startswith(problem)]
            assert named == ["no-egress"] * len(named) != []
            expect_service(session)
            return float(took_s)

        bound_s = pace.promised(15.0)
        assert pace.best(time_until_restarted, bound_s) < bound_s
        machine.as_root("mcpwrap status")


def test_while_squid_hangs_it_is_squid_that_doctor_names(machine: Machine) -> None:
    """With a long watchdog timeout, so that it hangs as long as the story observes it."""
    drop_in = f"/etc/systemd/system/{SPLICING}.service.d/60-patient.conf"
    unit, listed = f"{SPLICING}.service", "probe: reach h2.good.test:443"
    unlisted = "probe: reach a host that is not listed"
    machine.write(drop_in, "[Service]\nWatchdogSec=1h\n")
    machine.as_root(f"systemctl daemon-reload; systemctl restart {unit}")
    try:
        machine.as_root(f"systemctl kill --signal=STOP --kill-who=main {unit}")
        await_that(machine, f"mcpwrap status probe | grep -q 'no-egress.*{unit} does not answer'")
        machine.as_root("mcpwrap status", status=1)
        said = machine.as_root("mcpwrap doctor probe", status=1).out
        print(said)
        assert f"failed   {unit}: does not answer; its servers have no egress" in said
        assert f"failed   {listed}: {unit} does not answer" in said
        assert f"unknown  {unlisted}: could not be checked: {unit} does not answer" in said
        assert "which rule refused" not in said
        machine.as_root(f"systemctl kill --signal=CONT --kill-who=main {unit}")
        await_that(machine, "mcpwrap status")
        # The twin. Its one finding is that no MCP server is behind `probe`.
        said = machine.as_root("mcpwrap doctor probe", status=1).out
        for what in (f"{unit}: active", f"{listed}: HTTP/1.1 200", f"{unlisted}: refused"):
            assert f"good     {what}" in said
    finally:
        machine.path(drop_in).unlink()
        machine.as_root(f"systemctl daemon-reload; systemctl restart {unit}")


NO_DIRECTIVE = "this is no directive"  # status 1
BAD_EXPRESSION = "acl broken urlpath_regex ["  # status 0, and the list is empty


def a_mistake(mistake: str, unit: str, *marks: pytest.MarkDecorator) -> object:
    name = f"{mistake}-{unit}-{INSTANCES[unit]}"
    return pytest.param(unit, INSTANCES[unit], mistake, id=name, marks=marks)


CROSSED = only_in_test_all("the same instance with the other mistake")


@pytest.mark.parametrize(
    ("unit", "server", "mistake"),
    [
        a_mistake(NO_DIRECTIVE, SPLICING),
        a_mistake(NO_DIRECTIVE, INTERCEPTING, CROSSED),
        a_mistake(BAD_EXPRESSION, SPLICING, CROSSED),
        a_mistake(BAD_EXPRESSION, INTERCEPTING),
    ],
)
def test_a_broken_file_is_never_loaded(
    machine: Machine, internet: Internet, unit: str, server: str, mistake: str
) -> None:
    """First a reload: the old configuration stays in use. Then Squid is killed: no service."""
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
            assert play(beside, "status()") == 200  # the other instance is not affected
            journal = Journal(machine)
        journal.await_line(f"{unit}.service: Started")  # fixed, without any other action
        expect_service(session)
        machine.write(file, broken)
        assert "Squid" in machine.apply()  # the other way to fix it
        expect_service(session)


def expect_service(session: Session) -> None:
    """Check that the server reaches its hosts, and no other."""
    assert play(session, "status()") == 200
    assert play(session, "status(host='other.test')") == "CONNECT 403"


def expect_nothing_open(machine: Machine, session: Session, own: str) -> None:
    """Check that without Squid there is no egress, and that no process takes its place."""
    assert play(session, "status()") == "ConnectionRefusedError"
    web = [["198.51.100.10", 443], ["198.51.100.10", 80]]
    assert play(session, f"reached({web}, {NO_ANSWER_S})") == []
    squat = f'exec python3 -c "{LISTEN.format(where=(own, 3128))}"'
    with machine.session("", user="alice", command=squat) as squatter:
        assert squatter.read_line() == "up"
        her_port = [[own, 3128]]  # by which she receives nothing
        assert play(session, f"reached({her_port}, {NO_ANSWER_S})") == []
        squatter.send({})


DIFFERS = on_each_release("to Squid 5 it is no failure: which version it is decides")
ENOUGH = only_in_test_all("another fault that ends Squid with a status, as the first row's does")


@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        ("no_such_directive on", "'no_such_directive'"),
        pytest.param("connect_timeout ten parsecs", "ERROR: No digits were found", marks=ENOUGH),
        pytest.param("acl broken nosuchtype x", "invalid acl type 'nosuchtype'", marks=ENOUGH),
        pytest.param(BAD_EXPRESSION, "invalid regular expression", marks=DIFFERS),
    ],
)
def test_what_squid_finds_fault_with_is_refused_by_apply(
    machine: Machine, mistake: str, named: str
) -> None:
    """The operator has edited the installed part, and then allows another host."""
    wider = SERVERS.replace('"h2.good.test"', '"h2.good.test", "other.test"', 1)
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
        assert play(session, "status(host='other.test')") == 200  # the twin: fixed, it is allowed
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


# ------------------------------------------------------------------ changes at run time
OTHER_RESOLVER = "198.51.100.54"


def asked(internet: Internet) -> set[str]:
    """Return the resolvers that received packets."""
    return {packet.address for packet in internet.packets() if packet.port == internet_map.DNS_PORT}


def test_squid_follows_the_resolvers_of_the_machine(machine: Machine, internet: Internet) -> None:
    """And an open stream continues meanwhile."""
    for name in ("first", "second", "third"):
        internet.add_name(f"{name}.cdn.test", "198.51.100.11")
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
            for resolver, answer in ((now, "answered"), (before, "PermissionError")):
                by_squid = ("mcpwrap-proxy", "resolver_answers", resolver, pace.WAIT_S)
                assert outside(machine, *by_squid) == answer
            assert asked(internet) == {now}
        stream = play(session, "started['stream'].more(1)")
        assert (stream["in order"], stream["error"]) == (True, "")


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
            # Squid is there. It keeps its resolver's answers for a minute and no longer.
            assert play(session, "status(host='other.test')") == "CONNECT 403"
        journal = Journal(machine)
        machine.write("/etc/resolv.conf", f"nameserver {internet_map.RESOLVER}\n")
        journal.await_line("mcpwrap-resolvers.service: Finished")
        assert play(session, "status()") == 200


WAITING = "        ip daddr @reload_hold tcp dport 3128 tcp flags & (syn | ack) == syn drop\n"


def test_who_comes_by_the_front_waits_while_ports_of_squid_are_closed(machine: Machine) -> None:
    own = own_address(machine, "probe")
    with machine.session("probe") as session:
        with held(machine, own):
            play(session, "started.update(waits=Background(ask_directly))")
            # The front has tried, and its packet was dropped.
            await_that(machine, f"ss -Hnt state syn-sent dst {own} | grep -q {own}:3128")
        assert finished(session, "waits") == [200, ""]  # the kernel has retried


@only_in_test_all("mutation twin: shows that the rule is what makes the front wait")
def test_without_the_rule_who_comes_by_the_front_does_not_wait(machine: Machine) -> None:
    own = own_address(machine, "probe")
    with machine.session("probe") as session, machine.unwatched():
        with changed(machine, RULES, machine.read(RULES).replace(WAITING, "")):
            machine.as_root("systemctl reload mcpwrap-nft")
            with held(machine, own):
                assert play(session, "ask_directly()") == 200
        machine.as_root("systemctl reload mcpwrap-nft")


@contextmanager
def held(machine: Machine, own: str) -> Iterator[None]:
    """Close this address to new connections, as while Squid reads its files."""
    machine.as_root(f"nft add element inet mcpwrap reload_hold '{{ {own} timeout 1h }}'")
    try:
        yield
    finally:
        machine.as_root(f"nft delete element inet mcpwrap reload_hold '{{ {own} }}'")


def expect_all_came_through(session: Session, at_least: int) -> None:
    """Check that of a crowd of new connections, when it has ended, none has failed."""
    play(session, "setattr(started['crowd'], 'enough', True)")
    said = finished(session, "crowd", within_s=2 * pace.WAIT_S)
    print(said)
    assert (said["failed"], said["errors"]) == (0, [])
    assert said["done"] >= at_least


def test_five_more_servers_disturb_nobody(machine: Machine, request: pytest.FixtureRequest) -> None:
    """Streams of three kinds of egress stay open, and new connections come all the time."""
    config = SERVERS
    # In `make test` the crowd leaves the host some time for the others.
    connections, threads = (100, 1) if is_fast(request) else (500, 4)
    changes = (1, 4) if is_fast(request) else (1, 1, 1, 1, 1)
    with (
        machine.session("probe") as session,
        machine.session("neighbour") as neighbour,
        machine.session("look") as looking,
    ):
        for one in (session, neighbour, looking):
            play(one, "started.update(stream=Events(100000, 0.1))")
        play(
            neighbour,
            "started.update(by_front=Events(100000, 0.1, plain=plainly('api.good.test')))",
        )
        play(session, f"started.update(crowd=Crowd({connections}, {threads}))")
        play(looking, f"started.update(crowd=Crowd({connections // 10}, 1))")
        play(neighbour, f"started.update(crowd=Crowd({connections // 10}, 1, plainly))")
        numbers = count()
        for more in changes:
            for number in islice(numbers, more):
                opens = "\nintercept = true" if number % 2 else ""
                config += a_server(f"more{number}", f'egress = ["api.good.test"]{opens}')
            machine.configure(config)
            machine.apply()
        crowds = {session: connections, looking: connections // 10, neighbour: connections // 10}
        for one, least in crowds.items():
            expect_all_came_through(one, least)
        streams = ((session, "stream"), (neighbour, "stream"), (looking, "stream"))
        for one, name in (*streams, (neighbour, "by_front")):
            said = play(one, f"started['{name}'].more(5)")
            print(said)
            assert (said["in order"], said["error"]) == (True, "")
            assert said["came"] >= 5
    with machine.session("more0") as session, machine.session("more1") as looking:
        assert [play(one, "status()") for one in (session, looking)] == [200, 200]
    machine.configure(SERVERS)
    machine.apply()
