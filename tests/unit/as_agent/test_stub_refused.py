"""The stub without a session: the agent's first request is answered with the reason."""

import array
import fcntl
import json
import os
import socket
import subprocess
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mcpwrap.as_agent import stub as stub_module
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.session_socket import Exit
from mcpwrap.linux.unix_socket import fd_passing
from tests.shared import pace

REQUEST_S = 0.5
WHY = "this account may not use 'git'"
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
DISCOVER = {"jsonrpc": "2.0", "id": "probe", "method": "server/discover", "params": {}}
TOLD = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@dataclass
class Gate:
    """Stand-in gate: answers each connection with the next list of packets, repeats the last."""

    path: Path
    answers: list[list[bytes]]
    unread: list[int] = field(default_factory=list)  # the agent's unread bytes, before each packet
    heard: list[bytes] = field(default_factory=list)
    then: Callable[[socket.socket, list[int]], None] | None = None

    @contextmanager
    def listens(self) -> Iterator[None]:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(str(self.path))
        listener.listen()
        thread = threading.Thread(target=self._serve, args=(listener,))
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(pace.WAIT_S)
            listener.close()

    def _serve(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        _, fds = fd_passing.receive(connection, session_socket.MAX_PACKET_BYTES)
        try:
            for packet in self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]:
                self._note_unread(fds[0])  # until now the stub must not have read
                connection.send(packet)
                if packet[:1] == b"?":
                    self.heard.append(connection.recv(session_socket.MAX_PACKET_BYTES))
            if self.then:
                self.then(connection, fds)
        finally:
            fd_passing.close_all(fds)

    def _note_unread(self, fd: int) -> None:
        size = array.array("i", [0])
        fcntl.ioctl(fd, termios.FIONREAD, size)
        self.unread.append(size[0])


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(
        tmp_path / "gate.sock",
        [[session_socket.encode(session_socket.SessionRefused(Exit.NOT_ALLOWED, WHY))]],
    )


def stub(gate: Gate, stdin: int = subprocess.PIPE) -> "subprocess.Popen[bytes]":
    """Start a stub for this gate, with shorter timeouts than the installed one."""
    text = Path(stub_module.__file__).read_text()
    for before, after in (
        (f'GATE = "{stub_module.GATE}"', f'GATE = "{gate.path}"'),
        ("BETWEEN_TRIES_S = 5, 0.3", "BETWEEN_TRIES_S = 5, 0.01"),
        ("REQUEST_S, MAX_REQUEST_BYTES = 5.0,", f"REQUEST_S, MAX_REQUEST_BYTES = {REQUEST_S},"),
    ):
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    file = gate.path.with_name("stub")
    file.write_text(text)
    argv = [*text.splitlines()[0].removeprefix("#!").split(), str(file), "git"]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, stdin=stdin, stdout=pipe, stderr=pipe, env={"TZ": "UTC"})


def answered(gate: Gate, sent: bytes) -> tuple[int, list[Any], str]:
    """Return the stub's result for an agent that sends this: status, messages, standard error."""
    process = stub(gate)
    out, err = process.communicate(sent, timeout=pace.WAIT_S)
    return (
        process.returncode,
        [json.loads(line) for line in out.splitlines()],
        err.decode(errors="replace"),
    )


def lines(*messages: object) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def error(request_id: object, status: int = Exit.NOT_ALLOWED, why: str = WHY) -> dict[str, object]:
    told = {"code": -32603, "message": f"mcpwrap: {why}", "data": {"status": int(status)}}
    return {"jsonrpc": "2.0", "id": request_id, "error": told}


@pytest.mark.parametrize(
    ("sent", "ids"),
    [
        (lines(INITIALIZE), [1]),
        (lines({**INITIALIZE, "id": 0}), [0]),
        (lines({**INITIALIZE, "id": 'a"\\\n\ud800'}), ['a"\\\n\ud800']),
        (lines({**INITIALIZE, "method": "tools/list"}), [1]),  # first request since 2026-07-28
        (lines(DISCOVER, INITIALIZE), ["probe", 1]),  # an agent of both eras sends a second
        (lines(DISCOVER), ["probe"]),
        (lines(INITIALIZE, {**INITIALIZE, "id": 2}), [1]),
        (lines(TOLD, INITIALIZE), [1]),
        (b"\nno JSON\n" + lines(INITIALIZE), [1]),
        (b"[" * 60_000 + b"\n", []),
        (b"1" * 60_000 + b"\n", []),
        (b"", []),
        (lines(TOLD), []),
        (lines({"jsonrpc": "2.0", "id": 1, "result": {}}), []),
        (lines({**INITIALIZE, "id": None}), []),
        (lines({**INITIALIZE, "id": True}), []),
        (lines({**INITIALIZE, "method": 1}), []),
        (lines([INITIALIZE]), []),  # a batch, which may not contain it
        (lines(INITIALIZE)[:-1], []),  # an incomplete line
        (lines({**INITIALIZE, "params": {"x": "x" * 200_000}}), []),
    ],
)
def test_a_request_is_answered_with_the_reason(gate: Gate, sent: bytes, ids: list[object]) -> None:
    with gate.listens():
        status, messages, err = answered(gate, sent)
    assert (status, err) == (Exit.NOT_ALLOWED, f"mcpwrap-connect: {WHY}\n")
    assert messages == [error(request_id) for request_id in ids]


@pytest.mark.parametrize(
    ("packet", "status", "why"),
    [
        (b'!78 no "such"\nserver \xff', 78, 'no "such"\nserver \ufffd'),
        (b"!70 the server cannot be started", 70, "the server cannot be started"),
        (b"Zzz", 76, "the gate has another version than this program [E-SESSION-VERSION]"),
    ],
)
def test_a_reason_is_text_in_json(gate: Gate, packet: bytes, status: int, why: str) -> None:
    gate.answers = [[packet]]
    with gate.listens():
        assert answered(gate, lines(INITIALIZE))[:2] == (status, [error(1, status, why)])


def test_without_a_gate_the_agent_gets_the_reason(gate: Gate) -> None:
    status, messages, err = answered(gate, lines(INITIALIZE))
    why = "the gate does not answer: see `systemctl status mcpwrap-gate` [E-CONNECT-NO-GATE]"
    assert (status, err) == (Exit.UNAVAILABLE, f"mcpwrap-connect: {why}\n")
    assert messages == [error(1, Exit.UNAVAILABLE, why)]


def test_waiting_for_an_agent_that_sends_nothing_has_a_timeout(gate: Gate) -> None:
    with gate.listens(), stub(gate) as process:
        assert process.stdout
        assert process.stdout.read() == b""  # its input is still open
        assert process.wait(pace.WAIT_S) == Exit.NOT_ALLOWED


def test_until_the_session_starts_the_stub_retries_and_reads_nothing(gate: Gate) -> None:
    gate.answers = [[], [b"?TZ\0A"], [b"?TZ"], gate.answers[0]]
    sent = lines(INITIALIZE)
    read_fd, write_fd = os.pipe()
    os.write(write_fd, sent)
    with gate.listens():
        process = stub(gate, read_fd)
        out, _ = process.communicate(timeout=pace.WAIT_S)
    fd_passing.close_all([read_fd, write_fd])
    assert gate.heard == [b"TZ=UTC", b"TZ=UTC"]
    assert gate.unread == [len(sent)] * 3  # before each packet
    assert json.loads(out) == error(1)


def test_requests_of_a_session_that_breaks_off_are_not_answered_by_the_stub(gate: Gate) -> None:
    """The gate answers open requests, and the stub has read nothing."""
    gate.answers = [[b"S", b"!70 the wrapper was stopped"]]
    with gate.listens():
        ended = answered(gate, lines(INITIALIZE))
    assert ended == (70, [], "mcpwrap-connect: the wrapper was stopped\n")


def test_in_a_session_the_stub_holds_neither_end(gate: Gate) -> None:
    """The twin: the server gets the request, and its end is seen although the stub still runs."""
    gate.answers = [[b"S"]]
    is_seen = threading.Event()

    def serve(connection: socket.socket, fds: list[int]) -> None:
        assert os.read(fds[0], 65536) == lines(INITIALIZE)
        os.write(fds[1], b"the server's answer\n")
        fd_passing.close_all(fds)
        fds.clear()
        assert is_seen.wait(pace.WAIT_S)
        connection.send(b"X3")

    gate.then = serve
    with gate.listens(), stub(gate) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(lines(INITIALIZE))
        process.stdin.flush()
        assert process.stdout.read() == b"the server's answer\n"
        assert process.poll() is None
        is_seen.set()
        assert process.wait(pace.WAIT_S) == 3
