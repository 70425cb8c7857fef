"""Squid asks the resolvers that /etc/resolv.conf has now, however and whenever these change."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from tests.system.bed import internet_map
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.outgoing import a_server
from tests.system.survival import play

CONNECTED = (Profile.LIMITS, a_server("probe", 'egress = ["*.cdn.test"]'))

FILE = "/etc/resolv.conf"
FOLDER = "/run/systemd/resolve"
TARGET = f"{FOLDER}/stub-resolv.conf"
MAIN, LOOK = "mcpwrap-resolvers.path", "mcpwrap-resolvers.service"
AGAIN = "mcpwrap-resolvers-again.service"
SQUID = "mcpwrap-squid-proxy@1.service"
OTHER = "198.51.100.54"  # answers too
TIMES = 3
# Prints which resolvers Squid may ask, as soon as it is ADDRESS alone, or else after 20 s.
AWAIT = """
import json, re, subprocess, time
argv, give_up_at = ["nft", "list", "set", "inet", "mcpwrap", "resolvers4"], time.monotonic() + 20
def may(): return re.findall(r"[0-9.]{7,}", subprocess.check_output(argv, text=True))
while (found := may()) != [ADDRESS] and time.monotonic() < give_up_at: time.sleep(0.05)
print(json.dumps(found))
"""
# Nothing of ours is under way: the next change is seen by those who watch.
AT_REST = f"""
until [ "$(systemctl show -P SubState {MAIN})" = waiting ] &&
    [ -z "$(systemctl list-jobs --no-legend 'mcpwrap-resolvers*')" ]
do sleep 0.05; done
"""
# As it was until all had a unit of its own.
ALL_IN_ONE = """[Path]
PathChanged=/run/systemd/resolve/stub-resolv.conf
PathChanged=/run/resolvconf/resolv.conf
PathChanged=/run/NetworkManager/resolv.conf
"""
NO_LOOK = "[Service]\nExecStart=\nExecStart=/usr/bin/true\n"
NO_RELOAD = "[Service]\nExecReload=\nExecReload=/usr/bin/false\n"
SLOW_END = "[Service]\nExecStartPost=/usr/bin/sleep 2\n"
numbers = count(100)


def new_address() -> str:
    return f"198.51.100.{next(numbers) % 150 + 100}"


def text(address: str) -> str:
    return f"nameserver {address}\n"


def in_place(machine: Machine, file: str, address: str) -> None:
    machine.write(file, text(address))


def renamed_over(machine: Machine, file: str, address: str) -> None:
    machine.write(f"{file}.new", text(address))
    machine.path(f"{file}.new").rename(machine.path(file))


def made_anew(machine: Machine, file: str, address: str) -> None:
    machine.path(file).unlink()
    machine.write(file, text(address))


WAYS = (in_place, renamed_over, made_anew)


def follows(machine: Machine, address: str) -> bool:
    found: list[str] = machine.probe(f"ADDRESS = {address!r}\n{AWAIT}")
    return found == [address]


def expect_followed(machine: Machine, internet: Internet) -> None:
    """See that in the end Squid itself asks whom the file names."""
    machine.as_root(AT_REST)
    for resolver in (OTHER, internet_map.RESOLVER):
        in_place(machine, FILE, resolver)
        assert follows(machine, resolver)
        machine.as_root(AT_REST)
        expect_asked(machine, internet, resolver)


def expect_asked(machine: Machine, internet: Internet, resolver: str) -> None:
    """See that Squid asks this one for a name that nobody knows yet."""
    name = f"n{next(numbers)}.cdn.test"
    internet.add_name(name, "198.51.100.11")
    internet.forget()
    with machine.session("probe") as session:
        assert play(session, f"status(host={name!r})") == 200
    packets = internet.packets()
    assert {one.address for one in packets if one.port == internet_map.DNS_PORT} == {resolver}


@pytest.fixture
def linked(machine: Machine) -> Iterator[None]:
    """Make the file a link, to what is not there yet, for the time of a test."""
    file = machine.path(FILE)
    before = file.read_text()
    file.unlink()
    file.symlink_to(f"..{TARGET}")
    assert not machine.path(FOLDER).exists()
    machine.as_root(f"systemctl start {LOOK}; {AT_REST}")
    assert follows(machine, "127.0.0.1")  # of resolv.conf(5)
    yield
    file.unlink()
    machine.as_root(f"rm -r {FOLDER}")
    file.write_text(before)
    assert follows(machine, internet_map.RESOLVER)


def test_the_file_is_replaced(machine: Machine, internet: Internet) -> None:
    for way in WAYS * TIMES:
        address = new_address()
        way(machine, FILE, address)
        assert follows(machine, address), way
    expect_followed(machine, internet)


@pytest.mark.usefixtures("linked")
def test_what_a_link_leads_to_appears_later_and_is_replaced(machine: Machine) -> None:
    for _ in range(TIMES):
        address = new_address()
        in_place(machine, TARGET, address)
        assert follows(machine, address), "it has appeared"
        for way in WAYS:
            address = new_address()
            way(machine, TARGET, address)
            assert follows(machine, address), way
        machine.as_root(f"rm -r {FOLDER}; {AT_REST}")
        assert follows(machine, "127.0.0.1")
    in_place(machine, TARGET, new_address())


# ------------------------------------------------------------------ at the worst moment
@contextmanager
def drop_in(machine: Machine, unit: str, text: str) -> Iterator[None]:
    """Add this to a unit, for the time of the block."""
    file = f"/etc/systemd/system/{unit}.d/bed.conf"
    again = f"systemctl daemon-reload; systemctl restart {MAIN}; {AT_REST}"
    machine.write(file, text)
    machine.as_root(again)
    try:
        yield
    finally:
        machine.path(file).unlink()
        machine.as_root(again)


def is_seen_beside_another(machine: Machine) -> bool:
    """Say whether a change is seen of which systemd hears together with one in /run.

    As of a DHCP client, which writes its PID there: on a busy machine it comes to this by itself.
    """
    machine.as_root(AT_REST)
    address, systemd = new_address(), machine.leader
    os.kill(systemd, signal.SIGSTOP)
    try:
        machine.write("/run/dhclient.pid", "1\n")
        renamed_over(machine, FILE, address)
    finally:
        os.kill(systemd, signal.SIGCONT)
    seen = follows(machine, address)
    machine.path("/run/dhclient.pid").unlink()
    return seen


def test_what_else_happens_hides_no_change(machine: Machine, internet: Internet) -> None:
    assert all(is_seen_beside_another(machine) for _ in range(TIMES))
    with drop_in(machine, MAIN, ALL_IN_ONE):  # the twin
        machine.as_root("systemctl stop 'mcpwrap-resolvers@*.path'")
        assert not all(is_seen_beside_another(machine) for _ in range(20))  # it ends at the first
    expect_followed(machine, internet)


def is_seen_during(machine: Machine, unit: str) -> bool:
    """Say whether a change is seen that comes after a look, and before its unit has ended."""
    machine.as_root(AT_REST)
    first, last = new_address(), new_address()
    renamed_over(machine, FILE, first)
    machine.as_root(f'until [ "$(systemctl show -P SubState {unit})" = start-post ]; do :; done')
    renamed_over(machine, FILE, last)
    return follows(machine, last)


def test_what_changes_during_a_look_is_seen_by_the_next(
    machine: Machine, internet: Internet
) -> None:
    with drop_in(machine, LOOK, SLOW_END):
        assert is_seen_during(machine, LOOK)
        with drop_in(machine, AGAIN, NO_LOOK):  # the twin
            assert not is_seen_during(machine, LOOK)
    with drop_in(machine, AGAIN, SLOW_END):
        assert is_seen_during(machine, AGAIN)
    expect_followed(machine, internet)


def test_what_failed_is_done_again(machine: Machine, internet: Internet) -> None:
    """Else Squid would go on asking one whom the packet rules no longer let it reach."""
    machine.announce(f"{SQUID}|{LOOK}")
    with drop_in(machine, SQUID, NO_RELOAD):
        in_place(machine, FILE, OTHER)
        machine.as_root(f'until [ "$(systemctl show -P NRestarts {LOOK})" -ge 1 ]; do :; done')
        machine.path(f"/etc/systemd/system/{SQUID}.d/bed.conf").write_text("")
        machine.as_root(f"systemctl daemon-reload; {AT_REST}")
    expect_asked(machine, internet, OTHER)
    expect_followed(machine, internet)


def test_nothing_watches_where_it_was_stopped(machine: Machine) -> None:
    listed = "systemctl list-units --plain --no-legend --state=active 'mcpwrap-resolvers*.path'"
    before = machine.as_root(listed).out
    assert len(before.splitlines()) == 4
    machine.as_root(f"systemctl stop {MAIN}")
    assert machine.as_root(listed).out == ""
    machine.as_root(f"systemctl start {MAIN}")
    assert machine.as_root(listed).out == before
