"""Pool of gate sessions: admission, limits, and eviction of idle ones."""

import asyncio
import os
import socket
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from mcpwrap.as_http.gate import gate_connection, gate_session, session_pool
from mcpwrap.as_http.gate.gate_connection import SessionRefusedError
from mcpwrap.as_http.gate.gate_session import EndedError, GateSession
from mcpwrap.core.protocol.framing import MAX_LINE_BYTES
from mcpwrap.core.wire.listener_file import Listener
from mcpwrap.core.wire.session_socket import ServerEnded, SessionRefused, StderrChunk
from tests.shared import pace
from tests.unit.as_http.agent import Agent, running
from tests.unit.as_http.conftest import Clock
from tests.unit.as_http.standing_gate import Held, StandingGate, standing_gate

LISTENER = Listener(server="notes", uid=1000, address="127.0.0.1", is_remote=False)


@pytest.mark.parametrize(
    ("refused", "status", "retry"),
    [
        (SessionRefused(77, "this account may not use 'notes'"), 403, ""),
        (SessionRefused(78, "there is no server 'notes'"), 404, ""),
        (SessionRefused(75, "all sessions are in use"), 503, "5"),
        (SessionRefused(69, "stopped in an emergency"), 503, "5"),
        (SessionRefused(70, "cannot start /usr/bin/x"), 502, ""),
    ],
)
def test_a_refusal_of_the_gate_has_its_reason(
    agent: Agent, gate: StandingGate, refused: SessionRefused, status: int, retry: str
) -> None:
    gate.refusals = [refused] * 2
    for is_modern in (False, True):
        answer = agent.modern("tools/list") if is_modern else agent.begin()
        assert (answer.status, answer.header("Retry-After")) == (status, retry)
        told = answer.json()
        assert told["error"]["message"] == f"mcpwrap: {refused.why}"
        assert told["id"] == agent.ids


def test_without_a_gate_the_reason_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_connection, "_BETWEEN_TRIES_S", 0.001)
    with running({"gate": str(tmp_path / "none.sock")}) as port:
        refused = Agent(port).begin()
        assert refused.status == 503
        assert "systemctl status mcpwrap-gate" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("packet", "status"), [(b"X0", 76), (b"?\xff", 76), (b"Znonsense", 76), (b"", 69)]
)
def test_a_gate_of_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packet: bytes, status: int
) -> None:
    monkeypatch.setattr(gate_connection, "_TRIES", 1)
    monkeypatch.setattr(gate_connection, "_BETWEEN_TRIES_S", 0.0)
    path = str(tmp_path / "gate.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(path)
        listening.listen()

        async def begin() -> None:
            opening = asyncio.to_thread(gate_connection.open_gate_connection, path, "notes", "1000")
            task = asyncio.ensure_future(opening)
            connection, _ = await asyncio.to_thread(listening.accept)
            with connection:
                if packet:
                    connection.send(packet)
                    await task
            await task

        with pytest.raises(SessionRefusedError) as refused:
            asyncio.run(begin())
    assert refused.value.status == status


def test_a_gate_that_accepts_and_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_connection, "_FIRST_S", 0.01)
    path = str(tmp_path / "gate.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(path)
        listening.listen()
        with pytest.raises(SessionRefusedError) as refused:
            gate_connection.open_gate_connection(path, "notes", "1000")
    assert refused.value.status == 69


def test_with_all_sessions_in_use_an_idle_one_is_ended(gate: StandingGate, clock: Clock) -> None:
    busy = SessionRefused(75, "all sessions are in use")
    with running({"gate": gate.path, "clock": clock}) as port:
        left, used, new = Agent(port), Agent(port), Agent(port)
        left.begin().text()
        used.begin().text()
        with used.ask("GET") as standing:
            gate.refusals = [busy]
            assert new.begin().status == 503  # no session has been idle for long
            clock.now_s += 61
            gate.refusals = [busy]
            assert new.begin().status == 200
            assert gate.sessions[0].is_over.wait(pace.WAIT_S)
            gate.refusals = [busy]
            new.headers = {}
            assert standing.status == 200
        assert left.post(left.request("tools/list")).status == 404
        assert used.post(used.request("tools/list")).status == 200


def test_an_idle_one_is_ended_first(agent: Agent, gate: StandingGate) -> None:
    agent.modern("tools/list").text()
    gate.refusals = [SessionRefused(75, "all sessions are in use")]
    assert agent.begin().status == 200
    assert gate.sessions[0].is_over.wait(pace.WAIT_S)


def test_a_session_is_ended_after_its_idle_timeout(gate: StandingGate, clock: Clock) -> None:
    with running({"gate": gate.path, "clock": clock, "idle_s": 0.05}) as port:
        agent = Agent(port, {"Connection": "close"})
        agent.begin().text()
        clock.now_s += 1801
        assert gate.sessions[0].is_over.wait(pace.WAIT_S)


def test_the_limit_of_sessions(gate: StandingGate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_pool, "MAX_SESSIONS", 2)
    with running({"gate": gate.path}) as port:
        statuses = [Agent(port).begin().status for _ in range(3)]
        assert statuses == [200, 200, 503]
        gate.sessions[0].connection.shutdown(socket.SHUT_RDWR)
        while Agent(port).begin().status != 200:
            pass


def test_the_limit_of_idle_sessions(gate: StandingGate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_pool, "MAX_IDLE", 0)
    with running({"gate": gate.path}) as port:
        Agent(port).modern("tools/list").text()
        assert gate.sessions[0].is_over.wait(pace.WAIT_S)


async def _session(path: str) -> GateSession:
    opened = await asyncio.to_thread(gate_connection.open_gate_connection, path, "notes", "1000")
    return GateSession(opened, _spawn)


async def _send_for_ever(session: GateSession) -> None:
    while True:
        await session.send(b"x" * 65536)


async def _all_done() -> None:
    while _TASKS:
        await _TASKS.pop()


_TASKS: set[asyncio.Task[None]] = set()


def _spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(work)
    _TASKS.add(task)
    return task


def test_the_servers_stderr_goes_to_the_journal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_session, "MAX_STDERR_BYTES", 20)

    def complain(held: Held) -> ServerEnded:
        for text in (b"one\ntwo\n", b"three four five", b"six"):
            held.tell(StderrChunk(text))
        return ServerEnded(3)

    with standing_gate(tmp_path, complain) as gate, running({"gate": gate.path}) as port:
        assert "status 3" in Agent(port).begin().json()["error"]["message"]
    said = capfd.readouterr().err
    assert said == "one two\nthree four five (further output is not logged)\n"


def test_a_line_that_is_too_long_ends_the_session(tmp_path: Path) -> None:
    def shout(held: Held) -> ServerEnded:
        held.write(b"x" * (MAX_LINE_BYTES + 1))
        return ServerEnded(0)

    with standing_gate(tmp_path, shout) as gate, running({"gate": gate.path}) as port:
        assert "status 76: a line of over" in Agent(port).begin().json()["error"]["message"]


def test_an_unexpected_packet_ends_the_session(tmp_path: Path) -> None:
    def confused(held: Held) -> None:
        held.connection.send(b"S")

    with standing_gate(tmp_path, confused) as gate, running({"gate": gate.path}) as port:
        assert "broke off" in Agent(port).begin().json()["error"]["message"]


def test_a_server_that_does_not_read_gets_backpressure(tmp_path: Path) -> None:
    def deaf(held: Held) -> None:
        held.is_over.wait(pace.WAIT_S)

    async def send() -> None:
        session = await _session(gate.path)
        for _ in range(6):  # one in the pipe, one being written, four queued
            await session.send(b"x" * 65536)
        waiting = asyncio.ensure_future(session.send(b"x\n"))
        await asyncio.sleep(0)
        assert not waiting.done()
        session.abort()
        with pytest.raises(EndedError):
            await waiting
        gate.sessions[0].is_over.set()
        await _all_done()

    with standing_gate(tmp_path, deaf) as gate:
        asyncio.run(send())


def test_a_server_that_closes_its_input(tmp_path: Path) -> None:
    def half(held: Held) -> None:
        fd = held.fds.pop(0)
        os.close(fd)
        held.fds.insert(0, os.dup(held.fds[0]))
        held.is_over.wait(pace.WAIT_S)

    async def send() -> None:
        session = await _session(gate.path)
        with pytest.raises(EndedError):
            await _send_for_ever(session)
        session.abort()
        gate.sessions[0].is_over.set()
        await _all_done()

    with standing_gate(tmp_path, half) as gate:
        asyncio.run(send())


def _until_over(gate: StandingGate) -> None:
    while not gate.sessions:
        pass
    assert gate.sessions[0].is_over.wait(pace.WAIT_S)


def test_a_request_that_is_cancelled_at_the_gate_leaves_no_session(
    gate: StandingGate, clock: Clock
) -> None:
    async def leave() -> None:
        pool = session_pool.GateSessionPool(gate.path, LISTENER, _spawn, clock)
        opening = asyncio.ensure_future(pool.open())
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert pool.count == 0
        await asyncio.to_thread(_until_over, gate)

    asyncio.run(leave())
