"""Limits of one agent over its sessions, counted by the monitor, and those of one session."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from mcpwrap.as_gate.ipc import packets
from mcpwrap.as_gate.ipc.packets import CallFinished, CallLimitRequest
from mcpwrap.as_gate.monitor.dispatch import CallCounters
from mcpwrap.as_gate.session.call_limiter import SessionCallLimiter
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.as_gate.state.children import Child
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.as_gate.state.start_backoff import Backoff
from mcpwrap.core.policy.compiled import CompiledPolicy, compile_policy
from mcpwrap.core.policy.decision import CallOutcome
from mcpwrap.core.policy.rules import LimitsEntry, Policy
from mcpwrap.linux.process.shared_memory import DoorbellFlag, SharedCounters
from mcpwrap.linux.unix_socket.peer_credentials import Peer

CALL = b"12345678"
ENDED = CallOutcome(failed=False, call_digest=CALL, answer_digest=b"87654321")
FAILED = CallOutcome(failed=True, call_digest=CALL, answer_digest=b"87654321")
ALICE, BOB = 1000, 1001


class GivenPolicies:
    """Policy in force that was read from no file."""

    def __init__(self, policy: CompiledPolicy) -> None:
        self._policy = policy

    def compiled(self, server: str) -> CompiledPolicy | None:
        return self._policy if server == "s" else None


class GateWorld:
    """Monitor's counters, and sessions, each with a thread that answers it."""

    def __init__(self, policy: Policy) -> None:
        self.policy = compile_policy(policy, "s")
        self.counters = CallCounters(cast("Policies", GivenPolicies(self.policy)))
        self.asked = 0
        self.finished: list[CallFinished] = []
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._monitors: list[ToMonitor] = []

    def open(self, uid: int = ALICE) -> SessionCallLimiter:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        who = Peer(1, uid, frozenset({uid}))
        child = Child(1, who, ours, ours, DoorbellFlag(), SharedCounters(), "")
        child.server = "s"
        self._sockets += [theirs, ours]
        self._threads.append(threading.Thread(target=self._serve, args=(child,)))
        self._threads[-1].start()
        monitor = ToMonitor(theirs, DoorbellFlag(), Backoff())
        self._monitors.append(monitor)
        return SessionCallLimiter(self.policy, monitor, lambda *_: None)

    def settle(self) -> None:
        """Wait until the monitor has read all outcomes: it answers what follows them."""
        for monitor in self._monitors:
            monitor.ask("not counted", packets.NO_DIGEST)

    def _serve(self, child: Child) -> None:
        while packet := child.channel.recv(packets.MAX_BYTES):
            match packets.decode(packet):
                case CallLimitRequest() as request:
                    self.asked += request.tool != "not counted"
                    packets.answer(child.channel, self.counters.ask(child, request, 100.0))
                case CallFinished() as finished:
                    self.finished.append(finished)
                    self.counters.report(child, finished, 100.0)
                case other:
                    raise AssertionError(other)

    def close(self) -> None:
        for each in self._sockets[::2]:
            each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in self._sockets:
            each.close()


@contextmanager
def running(*limits: LimitsEntry, default: tuple[LimitsEntry, ...] = ()) -> Iterator[GateWorld]:
    world = GateWorld(Policy(limits=limits, default_limits=default))
    try:
        yield world
    finally:
        world.close()


def passes(
    world: GateWorld, session: SessionCallLimiter, tool: str = "a", outcome: CallOutcome = ENDED
) -> bool:
    """Call a tool as the gate does; return whether the call passes."""
    digest = CALL if session.counts(tool) else b""
    if session.ask(tool, digest) is not None:
        return False
    if not session.needs_answer(tool, digest):
        outcome = CallOutcome(outcome.failed, digest)
    session.report(tool, outcome)
    if world.asked:
        world.settle()
    return True


def test_a_loop_over_two_sessions_is_one_loop_and_another_call_ends_it() -> None:
    with running(LimitsEntry(tools=("a",), identical_calls=3)) as world:
        one, two, of_bob = world.open(), world.open(), world.open(BOB)
        assert [passes(world, session) for session in (one, two, one, two)] == [
            True,
            True,
            True,
            False,
        ]
        assert passes(world, of_bob)
        held = one.ask("a", CALL)
        assert held is not None
        assert (held.kind, held.why) == ("loop", "this call had the same answer 3 times in 10 min")
        assert passes(world, two, "other", FAILED)
        assert not passes(world, one)
        assert passes(world, two, "other")  # without limits of its own
        assert passes(world, one)


def test_failures_are_counted_over_sessions(capsys: pytest.CaptureFixture[str]) -> None:
    with running(LimitsEntry(failures=2)) as world:
        one, two = world.open(), world.open()
        assert passes(world, one, outcome=FAILED)
        assert passes(world, two, outcome=FAILED)
        held = one.ask("a", b"")
        assert held is not None
        assert (held.kind, held.why) == ("failures", "2 failures in a row")
        world.counters.forget_all()
        assert passes(world, one)
    assert "uid 1000, 's': 'a' is held back: 2 failures in a row" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("own", "default"),
    [
        ((LimitsEntry(identical_calls=2, scope="session"),), ()),
        ((), (LimitsEntry(identical_calls=2, scope="session"),)),
    ],
    ids=["operator's", "default"],
)
def test_limits_of_a_session_send_no_packet(
    own: tuple[LimitsEntry, ...], default: tuple[LimitsEntry, ...]
) -> None:
    with running(*own, default=default) as world:
        one, two = world.open(), world.open()
        assert [passes(world, one) for _ in range(3)] == [True, True, False]
        assert passes(world, two)  # has counters of its own
        one.renew(world.policy)
        assert passes(world, one)
    assert (world.asked, world.finished) == (0, [])


def test_both_limits_hold_and_the_session_counts_first() -> None:
    default = LimitsEntry(calls=1, repeated_calls=2)  # its rate is replaced by the operator's
    with running(LimitsEntry(calls=3), default=(default,)) as world:
        one, two = world.open(), world.open()
        assert [passes(world, one) for _ in range(3)] == [True, True, False]
        assert [passes(world, two) for _ in range(2)] == [True, False]
        assert world.finished == []  # a rate needs no outcome


def test_a_server_without_a_policy_has_no_limits() -> None:
    with running(LimitsEntry(calls=1)) as world:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            who = Peer(1, ALICE, frozenset())
            child = Child(1, who, ours, ours, DoorbellFlag(), SharedCounters(), "")
            child.server = "other"
            for _ in range(2):
                assert world.counters.ask(child, CallLimitRequest("a", CALL), 1.0) is None
            world.counters.report(child, CallFinished("a", failed=True), 1.0)
