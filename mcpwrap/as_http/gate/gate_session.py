"""Session with the gate, as lines in and lines out: relay, stderr log, grace at its end."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from mcpwrap.as_http.gate import pipe_io
from mcpwrap.as_http.gate.gate_connection import GateConnection
from mcpwrap.as_http.gate.pipe_io import QueueClosedError, SendQueue
from mcpwrap.core.protocol.framing import LineTooLongError
from mcpwrap.core.wire import session_socket
from mcpwrap.linux.systemd.stderr_log import log_line

MAX_STDERR_BYTES = 1024 * 1024  # of one session; the journal is not a server's to fill
_GRACE_S = 2.0  # for a server whose input has ended; the official SDKs give as much

Deliver = Callable[[bytes], Awaitable[None]]
Spawn = Callable[[Coroutine[Any, Any, None]], object]
_BROKEN_OFF = session_socket.ServerEnded(
    session_socket.Exit.UNAVAILABLE, "the gate broke off the session"
)


class EndedError(Exception):
    """Error for a line that cannot be sent, because the session has ended."""


async def drop(_: bytes) -> None:
    """Deliver nothing: nobody waits for it."""


class GateSession:
    """Relay of one session. It reads the next line when `deliver` is done with the last."""

    def __init__(self, opened: GateConnection, spawn: Spawn) -> None:
        self._opened = opened
        self._outbox = SendQueue()
        self._ended: asyncio.Future[session_socket.ServerEnded] = (
            asyncio.get_running_loop().create_future()
        )
        self._has_read_all = asyncio.Event()
        self._stderr_bytes = 0
        self.deliver: Deliver = drop
        self.when_ended: Callable[[session_socket.ServerEnded], Awaitable[None]] | None = None
        spawn(self._run())

    @property
    def has_ended(self) -> bool:
        """Say whether it has."""
        return self._ended.done()

    async def send(self, line: bytes) -> None:
        """Pass on one line, its end included. It goes whole or not at all.

        Raises:
            EndedError: there is nobody any more.
        """
        try:
            await self._outbox.put(line)
        except QueueClosedError as error:
            raise EndedError from error

    def abort(self) -> None:
        """End it at once, and all that the server has begun."""
        self._end(session_socket.ServerEnded(0))

    async def close(self) -> None:
        """End it as an agent does with its own: the server's input ends, and a little later all."""
        self._outbox.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await asyncio.shield(self._ended)
        self.abort()

    async def _run(self) -> None:
        """Live until one of them ends; then close everything, so that nothing is left behind."""
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [
                    tasks.create_task(one()) for one in (self._write, self._read, self._hear)
                ]
                await asyncio.shield(self._ended)
                for task in running:
                    task.cancel()
        finally:
            self._end(_BROKEN_OFF)
            self._opened.close()
            if self.when_ended is not None:
                await self.when_ended(self._ended.result())

    async def _write(self) -> None:
        with suppress(BrokenPipeError):
            while line := await self._outbox.take():
                await pipe_io.write_all(self._opened.to_server_fd, line)
        self._outbox.close()
        self._opened.close_input()

    async def _read(self) -> None:
        try:
            async for line in pipe_io.read_lines(self._opened.from_server_fd):
                await self.deliver(line)
        except LineTooLongError as error:
            self._end(session_socket.ServerEnded(session_socket.Exit.PROTOCOL, str(error)))
        self._has_read_all.set()

    async def _hear(self) -> None:
        """Hear what the gate says beside the lines: what it read of the server, it wrote before."""
        loop, ended = asyncio.get_running_loop(), _BROKEN_OFF
        with suppress(OSError, session_socket.ProtocolError):
            while packet := await loop.sock_recv(
                self._opened.gate, session_socket.MAX_PACKET_BYTES
            ):
                match session_socket.decode(packet):
                    case session_socket.StderrChunk(text):
                        self._note(text)
                    case session_socket.ServerEnded() as ended:
                        break
                    case _:
                        break
        if ended is not _BROKEN_OFF:
            await self._has_read_all.wait()
        self._end(ended)

    def _note(self, text: bytes) -> None:
        if self._stderr_bytes < MAX_STDERR_BYTES:
            self._stderr_bytes += len(text)
            is_full = self._stderr_bytes >= MAX_STDERR_BYTES
            said = text.decode(errors="replace").rstrip()
            log_line(f"{said} (and more, which is left out)" if is_full else said)

    def _end(self, ended: session_socket.ServerEnded) -> None:
        self._outbox.close()
        if not self._ended.done():
            self._ended.set_result(ended)
