"""Gate between two streams, with real pipes."""

import os
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from mcpwrap.core.gate.gate import Action, Gate, ToAgent
from mcpwrap.core.gate.session import JournalNote
from mcpwrap.core.policy.compiled import compile_policy
from mcpwrap.core.policy.decision import CallOutcome, LimitExceeded
from mcpwrap.core.policy.rules import Policy, Rule
from mcpwrap.core.protocol.framing import LineTooLongError
from mcpwrap.session.relay.gate_relay import GateRelay, RelayOutputs
from mcpwrap.session.relay.writer import MessageWriter
from tests.shared import pace
from tests.unit.core.scripted import ScriptedAudit

HIDE = Policy(rules=(Rule(name="no-x", action="block", tools=("x",)),))


class Counting:
    """Monitor that holds back one tool."""

    def counts(self, tool: str) -> bool:
        return bool(tool)

    def ask(self, tool: str, call_digest: bytes) -> LimitExceeded | None:
        return LimitExceeded("why", 1.0) if tool == "held" and call_digest else None

    def needs_answer(self, tool: str, call_digest: bytes) -> bool:
        return bool(tool and call_digest)

    def report(self, tool: str, outcome: CallOutcome) -> None:
        """Discard the outcome."""


@dataclass
class Between:
    """The agent's and the server's ends of the streams, which the test uses."""

    agent: socket.socket
    server: socket.socket
    notes: list[JournalNote] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    policies: list[Policy] = field(default_factory=list)
    pushed: list[Action] = field(default_factory=list)
    ended: str = "exited with status 1"
    inward: Future[None] = field(default_factory=Future)  # the agent's lines
    outward: Future[None] = field(default_factory=Future)  # the server's

    def renew(self, gate: Gate) -> list[Action]:
        if self.policies:
            gate.policy = compile_policy(self.policies.pop(), "probe")
        actions, self.pushed = self.pushed, []
        return actions


@contextmanager
def running(policy: Policy) -> Iterator[tuple[Between, GateRelay, ThreadPoolExecutor]]:
    agent, agents = socket.socketpair()
    server, servers = socket.socketpair()
    between = Between(agent, server)
    judged = GateRelay(
        Gate(compile_policy(policy, "probe"), Counting(), ScriptedAudit()),
        RelayOutputs(
            MessageWriter(os.dup(agents.fileno()), lambda: between.broken.append("agent")),
            MessageWriter(os.dup(servers.fileno()), lambda: between.broken.append("server")),
            between.notes.append,
            between.told.append,
        ),
        between.renew,
    )
    with agent, server, ThreadPoolExecutor() as pool:
        for end in (agent, server):
            end.settimeout(pace.WAIT_S)
        between.inward = pool.submit(judged.from_agent, os.dup(agents.fileno()))
        between.outward = pool.submit(
            judged.from_server, os.dup(servers.fileno()), lambda: between.ended
        )
        agents.close()
        servers.close()
        try:
            yield between, judged, pool
        finally:
            agent.close()
            server.close()
        for done in (between.inward, between.outward):
            done.result()


def call(tool: str, request_id: int = 1) -> bytes:
    params = f'{{"name":"{tool}","arguments":{{}}}}'
    return (
        f'{{"jsonrpc":"2.0","id":{request_id},"method":"tools/call","params":{params}}}\n'.encode()
    )


def line(end: socket.socket) -> bytes:
    """Return the data up to a newline, which must be its last byte."""
    got = bytearray()
    while not got.endswith(b"\n"):
        peeked = end.recv(1 << 20, socket.MSG_PEEK)
        got += end.recv(peeked.find(b"\n") + 1 or len(peeked))
    return bytes(got)


def test_allowed_lines_are_forwarded_and_refused_ones_answered() -> None:
    with running(HIDE) as (between, _, _):
        between.agent.sendall(call("y") + call("x", 2) + call("held", 3))
        assert line(between.server) == call("y")
        assert b"Refused by mcpwrap (rule no-x)." in line(between.agent)
        assert b"Refused by mcpwrap: why; retry in 1 s." in line(between.agent)
        between.server.sendall(b'garbage\n{"jsonrpc":"2.0","id":1,"result":{}}\n')
        assert line(between.agent) == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
    assert [note.kind for note in between.notes] == ["blocked", "limited", "malformed"]


def test_a_new_policy_applies_to_the_next_line() -> None:
    with running(Policy()) as (between, _, _):
        between.agent.sendall(call("x"))
        assert line(between.server) == call("x")
        between.policies.append(HIDE)
        between.agent.sendall(call("x", 2))
        assert b"rule no-x" in line(between.agent)


def test_what_was_pushed_is_done_before_the_next_line_or_tick() -> None:
    with running(HIDE) as (between, judged, _):
        between.pushed = [ToAgent(b"pushed\n")]
        between.agent.sendall(call("x"))
        assert line(between.agent) == b"pushed\n"
        assert b"rule no-x" in line(between.agent)
        between.pushed = [ToAgent(b"pushed\n")]
        judged.tick()
        assert line(between.agent) == b"pushed\n"


def test_the_last_line_needs_no_newline() -> None:
    with running(Policy()) as (between, _, _):
        between.agent.sendall(call("x").strip())
        between.agent.shutdown(socket.SHUT_WR)
        assert line(between.server) == call("x")


def test_an_agent_that_reads_late_does_not_block_its_own_calls() -> None:
    """Refusals are queued; allowed calls are forwarded meanwhile."""
    with running(HIDE) as (between, _, pool):
        big = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%s"}}\n'
        sending = pool.submit(between.server.sendall, big % (b"x" * 3_000_000))
        assert between.agent.recv(1) == b"{"  # the gate has written a part of it
        for n in range(50):
            between.agent.sendall(call("x", n))
        between.agent.sendall(call("y", 99))
        assert line(between.server) == call("y", 99)
        assert line(between.agent).endswith(b'"}}\n')
        sending.result()
        assert [b"no-x" in line(between.agent) for _ in range(50)] == [True] * 50


def test_an_incomplete_line_is_kept_until_its_end() -> None:
    with running(Policy()) as (between, _, _):
        between.agent.sendall(call("y") + call("z", 2)[:20])
        assert line(between.server) == call("y")
        between.agent.sendall(call("z", 2)[20:])
        assert line(between.server) == call("z", 2)


def test_unanswered_requests_are_answered_at_the_servers_end() -> None:
    with running(HIDE) as (between, _, _):
        between.ended = "killed by signal 11 (SIGSEGV)"
        between.agent.sendall(call("y", 1) + call("y", 2))
        assert [line(between.server) for _ in "12"] == [call("y", 1), call("y", 2)]
        between.server.sendall(b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
        between.server.close()
        assert line(between.agent) == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
        answer = line(between.agent)
        assert answer.startswith(b'{"jsonrpc":"2.0","id":2,"error":{"code":-32603,')
        assert b"killed by signal 11 (SIGSEGV)" in answer
    assert [note.kind for note in between.notes] == ["unanswered"]


def test_unanswered_requests_of_a_hub_are_recorded_and_left_to_it() -> None:
    with running(HIDE) as (between, judged, _):
        judged.leave_open_requests()
        between.agent.sendall(call("y", 1))
        assert line(between.server) == call("y", 1)
        between.server.close()
        between.outward.result()
        between.agent.settimeout(0)
        with pytest.raises(BlockingIOError):  # nothing was received
            between.agent.recv(1)
    assert [note.kind for note in between.notes] == ["unanswered"]


def test_an_agent_that_has_left_gets_no_responses() -> None:
    with running(HIDE) as (between, _, _):
        between.agent.sendall(call("y"))
        between.agent.shutdown(socket.SHUT_WR)
        assert line(between.server) == call("y")
        between.inward.result()  # it sees the agent's end, and ends too
        between.server.close()
        between.outward.result()
        between.agent.settimeout(0)
        with pytest.raises(BlockingIOError):  # nothing was received
            between.agent.recv(1)
    assert between.notes == []


def test_a_line_over_the_bound_ends_the_relay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpwrap.session.relay.gate_relay.LineBuffer.feed", _too_long)
    agent, ours = socket.socketpair()
    with agent, ours:
        agent.sendall(b"x\n")
        judged = GateRelay(
            Gate(compile_policy(Policy(), "probe"), Counting(), ScriptedAudit()),
            RelayOutputs(
                MessageWriter(os.dup(ours.fileno()), nothing),
                MessageWriter(os.dup(ours.fileno()), nothing),
                print,
                print,
            ),
            lambda _: [],
        )
        with pytest.raises(LineTooLongError):
            judged.from_agent(os.dup(ours.fileno()))


def nothing() -> None:
    """Ignore the write error."""


def _too_long(*_: object) -> bytes:
    raise LineTooLongError("a line")
