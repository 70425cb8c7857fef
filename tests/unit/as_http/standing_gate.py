"""Stand-in gate on a socket of its own: it applies no policy, and runs the server in threads."""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpwrap.core.wire import session_socket
from mcpwrap.linux.unix_socket import fd_passing
from tests.shared import pace

Message = dict[str, Any]


@dataclass
class Held:
    """One session, from the server's side."""

    connection: socket.socket
    subject: str
    env: dict[str, str]
    fds: list[int]
    heard: list[Any] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def lines(self) -> Iterator[Message | list[Message]]:
        """Yield the agent's messages."""
        with open(self.fds[0], "rb", closefd=False) as stream:
            for line in stream:
                message = json.loads(line)
                self.heard.append(message)
                yield message

    def say(self, *messages: Message | list[Message]) -> None:
        """Send messages to the agent."""
        for message in messages:
            self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.fds[1], data) :]

    def answer(self, request: Message, **result: Any) -> None:
        self.say({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def tell(self, packet: session_socket.Packet) -> None:
        self.connection.send(session_socket.encode(packet))


Server = Callable[[Held], session_socket.ServerEnded | None]


class StandingGate:
    """Stand-in gate. `server` runs as the server of each session, and returns its end."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.path = str(folder / "gate.sock")
        self.server = server
        self.refusals: list[session_socket.SessionRefused] = []  # of the next sessions
        self.asks: tuple[str, ...] = ()  # for these variables
        self.answered: list[bytes] = []
        self.sessions: list[Held] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(self.path)
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for held in self.sessions:
            with suppress(OSError):
                held.connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(pace.WAIT_S)
            assert not thread.is_alive()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=[connection], daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(ConnectionError):
            packet, fds = fd_passing.receive(connection, session_socket.MAX_PACKET_BYTES)
            if not packet:
                return
            try:
                self._begin(connection, packet, fds)
            finally:
                fd_passing.close_all(fds)

    def _begin(self, connection: socket.socket, packet: bytes, fds: list[int]) -> None:
        fd_passing.expect_streams(fds, readable=fds[0], writable=fds[1:])
        assert all(os.get_blocking(fd) for fd in fds)
        if self.refusals:
            connection.send(session_socket.encode(self.refusals.pop(0)))
            return
        if self.asks:
            connection.send(session_socket.encode(session_socket.VariablesRequest(self.asks)))
            self.answered.append(connection.recv(session_socket.MAX_PACKET_BYTES))
        hello = session_socket.decode_hello(session_socket.Protocol.GATE, packet)
        held = Held(connection, *hello, fds)
        self.sessions.append(held)
        connection.send(session_socket.encode(session_socket.ServerStarted()))
        self._play(held)

    def _play(self, held: Held) -> None:
        """Run until the server ends, or until the listener closes the connection."""
        with suppress(BrokenPipeError):
            ended = self.server(held)
            os.close(held.fds.pop())  # as the gate does when it has written all
            if ended is not None:
                held.tell(ended)
        with suppress(ConnectionError):
            while held.connection.recv(1):
                pass
        held.is_over.set()


@contextmanager
def standing_gate(folder: Path, server: Server) -> Iterator[StandingGate]:
    gate = StandingGate(folder, server)
    try:
        yield gate
    finally:
        gate.close()
