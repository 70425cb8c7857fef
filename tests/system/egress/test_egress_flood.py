"""Connection flood by one hostile server: egress of the others continues."""

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.shared import pace
from tests.system.bed.machine import CommandFailedError
from tests.system.bed.session import Session
from tests.system.egress import battlefield
from tests.system.egress.battlefield import RELOAD, RULES, Battlefield, call, reread
from tests.system.guest import flood
from tests.system.guest.proxy_attacks import connect, timed_inside
from tests.system.support.tiers import only_in_test_all

STAGE = battlefield.booted

COMMON = "/usr/lib/mcpwrap/squid/common.conf"
CAP = "client_ip_max_connections 1024"
MOST = 1025  # Squid's own count includes the connection that it is about to accept
AT_ONCE_S = 2.0  # an action that takes a few milliseconds on an idle machine
SESSIONS = 5
# Squid is left this many descriptors, a quarter of its limit, so that a smaller flood shows the
# effect.
DESCRIPTORS = 4096
EACH = 1000  # 5000 together
FEW = 200  # of the front, which has a count of its own: 256 for each server
CONNECT_TIMEOUT_S = 10  # of common.conf
SQUID = "mcpwrap-squid-proxy@1.service"


@pytest.fixture
def sessions(field: Battlefield) -> Iterator[list[Session]]:
    """Leave Squid few descriptors, and open all of a's sessions."""
    itself = "setpriv --reuid mcpwrap-proxy --regid mcpwrap-proxy --clear-groups"
    limit = f"--nofile={DESCRIPTORS}:{DESCRIPTORS}"
    field.machine.as_root(f"{itself} prlimit --pid {pid_of_squid(field)} {limit}")
    with ExitStack() as stack:
        yield [stack.enter_context(field.session_of("a")) for _ in range(SESSIONS)]


def pid_of_squid(field: Battlefield) -> str:
    """Return its process."""
    return field.machine.show(SQUID, "MainPID")["MainPID"]


def flood_by(sessions: list[Session], port: int, each: int) -> None:
    """Have all sessions open as many connections as they can."""
    for session in sessions:
        call(session, flood.hold, each, "", port)


def left_of_it(sessions: list[Session]) -> int:
    """Return how many connections they keep, once those over the limit have been closed."""
    give_up_at = time.monotonic() + pace.WAIT_S
    while (held := holds(sessions)) > MOST and time.monotonic() < give_up_at:
        pass
    return held


def holds(sessions: list[Session]) -> int:
    """Return how many connections neither side has closed."""
    return sum(call(session, flood.held) for session in sessions)


def descriptors(field: Battlefield) -> int:
    """Return how many descriptors Squid has in use."""
    return int(field.machine.look(f"ls /proc/{pid_of_squid(field)}/fd | wc -l"))


def await_service(field: Battlefield, name: str, target: str) -> None:
    """Wait until Squid serves a server again: the connections of a flood end first."""
    give_up_at = time.monotonic() + pace.WAIT_S
    while (told := field.run(name, connect, target)) != "200":
        assert time.monotonic() < give_up_at, told


def expect_an_answer_at_once(field: Battlefield) -> None:
    """Check that b reaches its hosts, as without any other server."""

    def time_of_an_answer() -> float:
        answer, took_s = field.run("b", timed_inside, "other.test", pace.WAIT_S / 2)
        print(f"{answer} after {took_s:.3f} s")
        assert answer == "HTTP/1.1 200 OK"
        return took_s

    bound_s = pace.promised(AT_ONCE_S)
    assert pace.best(time_of_an_answer, bound_s) < bound_s


OF_THE_FRONT = only_in_test_all("the front's own count, which is the same for each of its ports")


@pytest.mark.parametrize(
    ("port", "each"),
    [
        (3128, EACH),
        pytest.param(443, FEW, marks=OF_THE_FRONT),
        pytest.param(53, FEW, marks=OF_THE_FRONT),
    ],
)
def test_a_flood_of_connections_is_nobody_elses(
    field: Battlefield, sessions: list[Session], port: int, each: int
) -> None:
    field.run("b", connect, "other.test:443")
    squid = pid_of_squid(field)
    flood_by(sessions, port, each)
    held = left_of_it(sessions)
    print(f"port {port}: {held} of {SESSIONS * each} are held, and Squid has", end=" ")
    print(f"{descriptors(field)} descriptors")
    assert 0 < held <= MOST
    expect_an_answer_at_once(field)
    for session in sessions:
        call(session, flood.let_go)
    await_service(field, "a", "api.good.test:443")
    assert pid_of_squid(field) == squid  # which was busy, and did not hang


@only_in_test_all("mutation twin: shows that the flood above is one")
def test_without_the_cap_it_is_everybodys(field: Battlefield, sessions: list[Session]) -> None:
    field.machine.announce("mcpwrap-squid-proxy@1.service")  # without a descriptor it ends, too
    field.run("b", connect, "other.test:443")
    # Nor is an idle connection closed while others are opened, on a busy host.
    edits = [(CAP, ""), ("request_start_timeout 30 seconds", "request_start_timeout 1 hour")]
    with field.edited(COMMON, edits, reread("proxy-1")):
        flood_by(sessions, 3128, EACH)
        assert holds(sessions) == SESSIONS * EACH
        answer, took_s = field.run("b", timed_inside, "other.test", 1.5 * AT_ONCE_S)
        assert (answer, took_s > AT_ONCE_S) != ("HTTP/1.1 200 OK", False)
        for session in sessions:
            call(session, flood.let_go)
        field.end_sessions()  # those have the short timeout
    await_service(field, "b", "other.test:443")


def test_what_a_server_has_abandoned_still_counts(
    field: Battlefield, sessions: list[Session]
) -> None:
    """By the kernel's count it is over; Squid has it until the host does not answer in time."""
    chain = "{ type filter hook output priority 9; ip daddr 198.51.100.11 drop; };"
    field.machine.as_root(f"nft 'table inet hole {{ chain output {chain} }};'")
    try:
        field.run("b", connect, "other.test:443")
        began = time.monotonic()
        got_through = sum(call(session, flood.abandon, "a.cdn.test") for session in sessions[:2])
        ended = (time.monotonic() - began) // CONNECT_TIMEOUT_S  # and this many others can connect
        used = descriptors(field)
        print(f"{got_through} got through, and Squid has {used} descriptors")
        assert MOST - 1 <= got_through < (2 + ended) * MOST  # Squid 7 does not count that one
        assert used < 2 * MOST + 100
        expect_an_answer_at_once(field)
    finally:
        field.machine.as_root("nft delete table inet hole")
    await_service(field, "a", "api.good.test:443")


# The rule, and what its absence lets a server do: be counted as another server.
SOURCE = "meta skuid . ip saddr @egress_addr meta skuid"


def test_a_server_cannot_choose_by_which_address_it_is_counted(field: Battlefield) -> None:
    another = "127.9.9.9"
    if field.has_filters:
        addresses = ("127.0.0.1", another, field.address_of("a"))
        assert [field.run("a", flood.bound_to, each) for each in addresses] == ["EPERM"] * 3
        return  # SocketBindDeny= leaves it none to choose, with these rules or without
    for address in ("127.0.0.1", another, field.address_of("b")):
        assert field.run("a", flood.bound_to, address) == "ECONNREFUSED", address
    assert field.run("a", flood.bound_to, field.address_of("a")) == "connected"
    with field.edited(RULES, [(SOURCE, "meta skuid")], RELOAD):
        assert field.run("a", flood.bound_to, another) == "connected"


def test_the_address_is_the_servers_own_again_at_each_start(field: Battlefield) -> None:
    own, machine = field.address_of("a"), field.machine
    assert field.run("a", connect, "api.good.test:443") == "200"
    machine.as_root(f"ip route delete local {own} dev lo table local")
    assert field.run("a", connect, "api.good.test:443") == "ECONNREFUSED"
    field.end_sessions()
    machine.as_root("systemctl stop mcpwrap@a.service")
    assert field.run("a", connect, "api.good.test:443") == "200"
    with pytest.raises(CommandFailedError):
        machine.look(f"ip route get {own} | grep -q 'src 127.0.0.1'")
