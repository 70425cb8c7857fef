"""RUNS AS mcpw-NAME: lines from and to the gate, without a thread.

The descriptors stay blocking: O_NONBLOCK would hold for everyone who has the same open file.
"""

import asyncio
import os
import select
from collections.abc import AsyncGenerator, Callable, Iterable

from mcpwrap.core.lines import LineBuffer

_READ_BYTES = 262_144
_NEVER_BLOCKS_BYTES = select.PIPE_BUF  # poll(2): what is ready takes that much


async def lines(fd: int) -> AsyncGenerator[bytes, None]:
    """Yield each line that comes, without its newline, until the stream ends.

    Raises:
        LineTooLongError: it cannot be followed any further.
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


class Output:
    """Writes whole lines, one after the other, and waits while nobody reads."""

    def __init__(self, fd: int, clean: Callable[[bytes], bytes]) -> None:
        self._fd = fd
        self._clean = clean  # of secrets
        self._lock = asyncio.Lock()

    async def write(self, messages: Iterable[bytes]) -> None:
        """Write these lines, newlines included.

        Raises:
            BrokenPipeError: nobody will read any more.
        """
        async with self._lock:
            for message in messages:
                await self._write(memoryview(self._clean(message)))

    async def _write(self, rest: memoryview) -> None:
        loop = asyncio.get_running_loop()
        while rest:
            if not _is_ready(self._fd, select.POLLOUT):
                await _until(self._fd, loop.add_writer, loop.remove_writer)
            rest = rest[os.write(self._fd, rest[:_NEVER_BLOCKS_BYTES]) :]


def _is_ready(fd: int, event: int) -> bool:
    """Say whether the next call will not block; it fails at once where there is an error."""
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
