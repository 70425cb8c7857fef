"""Non-blocking line I/O on our ends of a gate session's pipes."""

import asyncio
import os
from collections.abc import AsyncIterator

from mcpwrap.core.protocol.framing import LineBuffer

_CHUNK_BYTES = 256 * 1024


async def lines(fd: int) -> AsyncIterator[bytes]:
    """Yield whole lines without their ends, until the other end is closed.

    Nothing is read while the last line is still being dealt with.

    Raises:
        LineTooLongError: a line is over the bound.
    """
    buffer = LineBuffer()
    while chunk := await _read(fd):
        for line in bytes(buffer.feed(chunk)).split(b"\n"):
            if line and not line.isspace():
                yield line


async def write(fd: int, data: bytes) -> None:
    """Write all of it.

    Raises:
        BrokenPipeError: nobody reads any more.
    """
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            await _writable(fd)


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
