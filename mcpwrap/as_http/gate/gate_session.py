"""Gate session, as lines in and lines out: relay, stderr log, grace period at its end."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from mcpwrap.as_http.gate import pipe_io
from mcpwrap.as_http.gate.gate_connection import GateConnection
from mcpwrap.as_http.gate.pipe_io import QueueClosedError, SendQueue
from mcpwrap.core.protocol.framing import LineTooLongError
from mcpwrap.core.wire import session_socket
from mcpwrap.http_server.persistent_connections import Spawn
from mcpwrap.linux.systemd.stderr_log import log_line

MAX_STDERR_BYTES = 1024 * 1024  # of one session, so that no server fills the journal
_GRACE_S = 2.0  # for a server whose input has ended; the official SDKs wait as long

Deliver = Callable[[bytes], Awaitable[None]]
_BROKEN_OFF = session_socket.ServerEnded(
    session_socket.Exit.UNAVAILABLE, "the gate broke off the session"
)


class EndedError(Exception):
    """Error for a line that cannot be sent, because the session has ended."""


async def drop(_: bytes) -> None:
    """Discard a line: no request waits for it."""


class GateSession:
    """Relay of one session. It reads the next line when `deliver` has handled the last."""

    def __init__(self, opened: GateConnection, spawn: Spawn) -> None:
        self._opened = opened
        self._queue = SendQueue()
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
        """Return whether the session has ended."""
        return self._ended.done()

    async def send(self, line: bytes) -> None:
        """Send one line to the server, its end included. It is sent whole or not at all.

        Raises:
            EndedError: the session has ended.
        """
        try:
            await self._queue.put(line)
        except QueueClosedError as error:
            raise EndedError from error

    def abort(self) -> None:
        """End the session at once, with everything that the server has started."""
        self._end(session_socket.ServerEnded(0))

    async def close(self) -> None:
        """End the session as an agent does over stdio: close the server's input, wait, and end."""
        self._queue.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await asyncio.shield(self._ended)
        self.abort()

    async def _run(self) -> None:
        """Run until the session ends, then close all its descriptors."""
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [
                    tasks.create_task(one())
                    for one in (self._write, self._read, self._read_packets)
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
            while line := await self._queue.take():
                await pipe_io.write_all(self._opened.to_server_fd, line)
        self._queue.close()
        self._opened.close_input()

    async def _read(self) -> None:
        try:
            async for line in pipe_io.read_lines(self._opened.from_server_fd):
                await self.deliver(line)
        except LineTooLongError as error:
            self._end(session_socket.ServerEnded(session_socket.Exit.PROTOCOL, str(error)))
        self._has_read_all.set()

    async def _read_packets(self) -> None:
        """Read the gate's packets. Before it reports the end, it has written all the lines."""
        loop, ended = asyncio.get_running_loop(), _BROKEN_OFF
        with suppress(OSError, session_socket.ProtocolError):
            while packet := await loop.sock_recv(
                self._opened.gate, session_socket.MAX_PACKET_BYTES
            ):
                match session_socket.decode(packet):
                    case session_socket.StderrChunk(text):
                        self._log_stderr(text)
                    case session_socket.ServerEnded() as ended:
                        break
                    case _:
                        break
        if ended is not _BROKEN_OFF:
            await self._has_read_all.wait()
        self._end(ended)

    def _log_stderr(self, text: bytes) -> None:
        if self._stderr_bytes < MAX_STDERR_BYTES:
            self._stderr_bytes += len(text)
            is_full = self._stderr_bytes >= MAX_STDERR_BYTES
            line = text.decode(errors="replace").rstrip()
            log_line(f"{line} (further output is not logged)" if is_full else line)

    def _end(self, ended: session_socket.ServerEnded) -> None:
        self._queue.close()
        if not self._ended.done():
            self._ended.set_result(ended)
