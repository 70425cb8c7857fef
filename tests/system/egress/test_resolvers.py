"""Squid queries the present resolvers of /etc/resolv.conf, however and whenever these change."""

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from tests.shared import pace
from tests.system.bed import internet_map
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.support.egress_recovery import await_that, booted, is_fast
from tests.system.support.egress_sessions import play
from tests.system.support.tiers import only_in_test_all

STAGE = booted

FILE = "/etc/resolv.conf"
FOLDER = "/run/systemd/resolve"
TARGET = f"{FOLDER}/stub-resolv.conf"
MAIN, LOOK = "mcpwrap-resolvers.path", "mcpwrap-resolvers.service"
AGAIN = "mcpwrap-resolvers-again.service"
SQUID = "mcpwrap-squid-proxy@1.service"
OTHER = "198.51.100.54"  # answers too
SET = "nft list set inet mcpwrap resolvers4"
# None of our units is running: the path units see the next change.
AT_REST = (
    f'[ "$(systemctl show -P SubState {MAIN})" = waiting ] &&'
    """ [ -z "$(systemctl list-jobs --no-legend 'mcpwrap-resolvers*')" ]"""
)
# As it was until all had a unit of its own.
ALL_IN_ONE = """[Path]
PathChanged=/run/systemd/resolve/stub-resolv.conf
PathChanged=/run/resolvconf/resolv.conf
PathChanged=/run/NetworkManager/resolv.conf
"""
NO_LOOK = "[Service]\nExecStart=\nExecStart=/usr/bin/true\n"
NO_RELOAD = "[Service]\nExecReload=\nExecReload=/usr/bin/false\n"
# The end of a run waits for this file.
GO_ON = "/opt/bed/go-on"
HELD_END = f"[Service]\nExecStartPost=/bin/sh -c 'until [ -e {GO_ON} ]; do sleep 0.05; done'\n"
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


def may_ask(machine: Machine) -> list[str]:
    """Return the resolvers that the packet rules let Squid reach."""
    return re.findall(r"[0-9.]{7,}", machine.look(SET))


def expect_followed_to(machine: Machine, address: str) -> None:
    """Wait until the rules let Squid query this resolver only."""
    addresses = "grep -oE '[0-9.]{7,}' | xargs"
    await_that(machine, f'[ "$({SET} | {addresses})" = {address} ]')


def await_rest(machine: Machine) -> None:
    await_that(machine, AT_REST)


def expect_followed(machine: Machine, internet: Internet) -> None:
    """Check that in the end Squid itself queries the resolver in the file."""
    await_rest(machine)
    for resolver in (OTHER, internet_map.RESOLVER):
        in_place(machine, FILE, resolver)
        expect_followed_to(machine, resolver)
        await_rest(machine)
        expect_asked(machine, internet, resolver)


def expect_asked(machine: Machine, internet: Internet, resolver: str) -> None:
    """Check that Squid queries this resolver for a name that is in no cache."""
    name = f"n{next(numbers)}.cdn.test"
    internet.add_name(name, "198.51.100.11")
    internet.forget()
    with machine.session("probe") as session:
        assert play(session, f"status(host={name!r})") == 200
    packets = internet.packets()
    assert {one.address for one in packets if one.port == internet_map.DNS_PORT} == {resolver}


@pytest.fixture
def linked(machine: Machine) -> Iterator[None]:
    """Make the file a link, to a missing file at first, for the time of a test."""
    file = machine.path(FILE)
    before = file.read_text()
    file.unlink()
    file.symlink_to(f"..{TARGET}")
    assert not machine.path(FOLDER).exists()
    machine.as_root(f"systemctl start {LOOK}")
    await_rest(machine)
    expect_followed_to(machine, "127.0.0.1")  # of resolv.conf(5)
    yield
    file.unlink()
    machine.as_root(f"rm -r {FOLDER}")
    file.write_text(before)
    expect_followed_to(machine, internet_map.RESOLVER)


@pytest.fixture
def times(request: pytest.FixtureRequest) -> int:
    """Return how often a story repeats the same action."""
    return 1 if is_fast(request) else 3


def test_the_file_is_replaced(machine: Machine, internet: Internet, times: int) -> None:
    for way in WAYS * times:
        address = new_address()
        way(machine, FILE, address)
        expect_followed_to(machine, address)
    expect_followed(machine, internet)


@pytest.mark.usefixtures("linked")
def test_what_a_link_leads_to_appears_later_and_is_replaced(machine: Machine, times: int) -> None:
    for _ in range(times):
        address = new_address()
        in_place(machine, TARGET, address)
        expect_followed_to(machine, address)  # it has appeared
        for way in WAYS:
            address = new_address()
            way(machine, TARGET, address)
            expect_followed_to(machine, address)
        machine.as_root(f"rm -r {FOLDER}")
        await_rest(machine)
        expect_followed_to(machine, "127.0.0.1")
    in_place(machine, TARGET, new_address())


# ------------------------------------------------------------------ unfavourable timing
@contextmanager
def drop_in(machine: Machine, unit: str, text: str) -> Iterator[None]:
    """Add this to a unit, for the time of the block."""
    file = f"/etc/systemd/system/{unit}.d/bed.conf"
    machine.write(file, text)
    reread(machine)
    try:
        yield
    finally:
        machine.path(file).unlink()
        reread(machine)


def reread(machine: Machine) -> None:
    # reset-failed clears the count of starts too: the stories restart it more often than it allows.
    machine.as_root(
        f"systemctl daemon-reload; systemctl reset-failed {MAIN}; systemctl restart {MAIN}"
    )
    await_rest(machine)


def change_beside_another(machine: Machine) -> str:
    """Change the resolver so that systemd sees it together with a change in /run.

    As by a DHCP client, which writes its PID there: on a busy machine this happens by itself.
    """
    await_rest(machine)
    address, systemd = new_address(), machine.leader
    os.kill(systemd, signal.SIGSTOP)
    try:
        machine.write("/run/dhclient.pid", "1\n")
        renamed_over(machine, FILE, address)
    finally:
        os.kill(systemd, signal.SIGCONT)
    return address


def test_what_else_happens_hides_no_change(
    machine: Machine, internet: Internet, times: int
) -> None:
    for _ in range(times):
        expect_followed_to(machine, change_beside_another(machine))
        machine.path("/run/dhclient.pid").unlink()
    expect_followed(machine, internet)


@only_in_test_all("mutation twin: shows that a unit for all paths loses a change")
def test_with_one_unit_for_all_paths_a_change_is_lost(machine: Machine, internet: Internet) -> None:
    def is_lost() -> bool:
        seen = is_seen_soon(machine, change_beside_another(machine))
        machine.path("/run/dhclient.pid").unlink()
        return not seen

    with drop_in(machine, MAIN, ALL_IN_ONE):
        machine.as_root("systemctl stop 'mcpwrap-resolvers@*.path'")
        assert any(is_lost() for _ in range(20))  # it ends at the first
    expect_followed(machine, internet)


def is_seen_soon(machine: Machine, address: str) -> bool:
    """Return whether a change is seen within a time that is enough if nothing hides it."""
    give_up_at = time.monotonic() + pace.promised(5.0)
    while time.monotonic() < give_up_at:
        if may_ask(machine) == [address]:
            return True
    return False


def change_during(machine: Machine, unit: str) -> str:
    """Change the resolver after a read, before its unit has ended; return the new one."""
    await_rest(machine)
    machine.path(GO_ON).unlink(missing_ok=True)
    first, last = new_address(), new_address()
    try:
        renamed_over(machine, FILE, first)
        await_that(machine, f'[ "$(systemctl show -P SubState {unit})" = start-post ]')
        renamed_over(machine, FILE, last)
    finally:
        machine.write(GO_ON, "")
    return last


def test_what_changes_during_a_look_is_seen_by_the_next(
    machine: Machine, internet: Internet
) -> None:
    machine.write(GO_ON, "")
    for unit in (LOOK, AGAIN):
        with drop_in(machine, unit, HELD_END):
            expect_followed_to(machine, change_during(machine, unit))
    expect_followed(machine, internet)


@only_in_test_all("mutation twin: shows that the second look is what sees it")
def test_without_the_second_look_what_changes_during_one_is_lost(
    machine: Machine, internet: Internet
) -> None:
    machine.write(GO_ON, "")
    with drop_in(machine, LOOK, HELD_END), drop_in(machine, AGAIN, NO_LOOK):
        assert not is_seen_soon(machine, change_during(machine, LOOK))
    expect_followed(machine, internet)


@only_in_test_all("a failure of another unit on the way, and ten seconds until the next look")
def test_what_failed_is_done_again(machine: Machine, internet: Internet) -> None:
    """Else Squid would continue to query a resolver that the packet rules refuse to it."""
    machine.announce(f"{SQUID}|{LOOK}")
    with drop_in(machine, SQUID, NO_RELOAD):
        in_place(machine, FILE, OTHER)
        await_that(machine, f'[ "$(systemctl show -P NRestarts {LOOK})" -ge 1 ]')
        machine.path(f"/etc/systemd/system/{SQUID}.d/bed.conf").write_text("")
        machine.as_root("systemctl daemon-reload")
        await_rest(machine)
    expect_asked(machine, internet, OTHER)
    expect_followed(machine, internet)


def test_nothing_watches_where_it_was_stopped(machine: Machine) -> None:
    listed = "systemctl list-units --plain --no-legend --state=active 'mcpwrap-resolvers*.path'"
    before = machine.look(listed)
    assert len(before.splitlines()) == 4
    machine.as_root(f"systemctl stop {MAIN}")
    assert machine.look(listed) == ""
    machine.as_root(f"systemctl start {MAIN}")
    assert machine.look(listed) == before
