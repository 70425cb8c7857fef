"""Non-blocking line I/O on the listener's ends of a gate session's pipes.

Lines to a server that does not read wait in a bounded send queue (backpressure).
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator

from mcpwrap.core.protocol.framing import LineBuffer

_CHUNK_BYTES = 256 * 1024
_MAX_QUEUED_LINES = 4  # then agents wait


async def read_lines(fd: int) -> AsyncIterator[bytes]:
    """Yield whole lines without their ends, until the other end is closed.

    The pipe is not read while the consumer still handles the last line.

    Raises:
        LineTooLongError: a line is over the bound.
    """
    buffer = LineBuffer()
    while chunk := await _read(fd):
        for line in bytes(buffer.feed(chunk)).split(b"\n"):
            if line and not line.isspace():
                yield line


async def write_all(fd: int, data: bytes) -> None:
    """Write all the data.

    Raises:
        BrokenPipeError: the other end is closed.
    """
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            await _writable(fd)


class QueueClosedError(Exception):
    """Error for a queue that is closed."""


class SendQueue:
    """Bounded queue. A line is in it whole or not at all, even if a caller is cancelled."""

    def __init__(self, max_waiting: int = _MAX_QUEUED_LINES) -> None:
        self._lines: deque[bytes] = deque()
        self._max_waiting = max_waiting
        self._has_room, self._has_some = asyncio.Event(), asyncio.Event()
        self._is_closed = False

    async def put(self, line: bytes) -> None:
        """Add a line, once there is room.

        Raises:
            QueueClosedError: the queue is closed, or was closed during the wait.
        """
        while len(self._lines) >= self._max_waiting and not self._is_closed:
            self._has_room.clear()
            await self._has_room.wait()
        if self._is_closed:
            raise QueueClosedError
        self._lines.append(line)
        self._has_some.set()

    async def take(self) -> bytes:
        """Return the next line; empty once the queue is closed and all lines were taken."""
        while not self._lines and not self._is_closed:
            self._has_some.clear()
            await self._has_some.wait()
        if not self._lines:
            return b""
        self._has_room.set()
        return self._lines.popleft()

    def close(self) -> None:
        """Accept no more lines. Queued lines can still be taken."""
        self._is_closed = True
        self._has_room.set()
        self._has_some.set()


async def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, _CHUNK_BYTES)
        except BlockingIOError:
            await _readable(fd)


async def _readable(fd: int) -> None:
    loop, is_ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, is_ready.set)
    try:
        await is_ready.wait()
    finally:
        loop.remove_reader(fd)


async def _writable(fd: int) -> None:
    loop, is_ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_writer(fd, is_ready.set)
    try:
        await is_ready.wait()
    finally:
        loop.remove_writer(fd)
