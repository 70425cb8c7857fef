"""Asynchronous line I/O with the gate, without a thread.

The descriptors stay blocking: O_NONBLOCK would apply to all processes with the same open file.
"""

import asyncio
import os
import select
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable

from mcpwrap.core.protocol.framing import LineBuffer

_READ_BYTES = 262_144
_MAX_HELD_BYTES = 1024 * 1024  # of lines that the gate has not read yet
_NEVER_BLOCKS_BYTES = select.PIPE_BUF  # poll(2): a descriptor that is ready takes that much


async def lines(fd: int) -> AsyncGenerator[bytes, None]:
    """Yield each line without its newline, until the stream ends.

    Raises:
        LineTooLongError: a line is too long, and the rest cannot be divided into lines.
    """
    loop = asyncio.get_running_loop()
    buffer = LineBuffer()
    while True:
        if not _is_ready(fd, select.POLLIN):
            await _until(fd, loop.add_reader, loop.remove_reader)
        chunk = os.read(fd, _READ_BYTES)
        if not chunk:
            return
        for line in bytes(buffer.feed(chunk)).split(b"\n"):
            if line:
                yield line


class LineWriter:
    """Writer of whole lines, in order, also if a caller is cancelled meanwhile."""

    def __init__(self, fd: int, clean: Callable[[bytes], bytes]) -> None:
        self._fd = fd
        self._clean = clean  # redacts secrets
        self._lines: deque[bytes] = deque()
        self._held_bytes = 0
        self._is_wanted, self._has_room, self._is_done = (asyncio.Event() for _ in range(3))
        self._has_room.set()
        self._is_done.set()
        self._has_no_reader = asyncio.Event()

    async def write(self, messages: Iterable[bytes]) -> None:
        """Queue these lines, newlines included, and wait while the queue is too long."""
        for message in messages:
            line = self._clean(message)
            self._lines.append(line)
            self._held_bytes += len(line)
            self._is_done.clear()
            self._is_wanted.set()
        if self._held_bytes > _MAX_HELD_BYTES and not self._has_no_reader.is_set():
            self._has_room.clear()
        await self._has_room.wait()

    async def run(self) -> None:
        """Write for ever, or until the reader has closed the pipe."""
        try:
            while await self._is_wanted.wait():
                while self._lines:
                    await self._write_first()
                self._is_wanted.clear()
                self._is_done.set()
        except BrokenPipeError:
            for event in (self._has_no_reader, self._has_room, self._is_done):
                event.set()

    async def done(self) -> None:
        """Wait until all is written, or the reader has closed the pipe."""
        await self._is_done.wait()

    async def expect_reader(self) -> None:
        """Wait for ever.

        Raises:
            BrokenPipeError: the reader has closed the pipe.
        """
        await self._has_no_reader.wait()
        raise BrokenPipeError

    async def _write_first(self) -> None:
        loop = asyncio.get_running_loop()
        rest = memoryview(self._lines.popleft())
        while rest:
            if not _is_ready(self._fd, select.POLLOUT):
                await _until(self._fd, loop.add_writer, loop.remove_writer)
            written = os.write(self._fd, rest[:_NEVER_BLOCKS_BYTES])
            self._held_bytes -= written
            rest = rest[written:]
        if self._held_bytes <= _MAX_HELD_BYTES:
            self._has_room.set()


def _is_ready(fd: int, event: int) -> bool:
    """Return whether the next call does not block. After an error it fails at once."""
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(0))


async def _until(
    fd: int,
    add: Callable[..., object],
    remove: Callable[[int], object],
) -> None:
    ready = asyncio.Event()
    add(fd, ready.set)
    try:
        await ready.wait()
    finally:
        remove(fd)
