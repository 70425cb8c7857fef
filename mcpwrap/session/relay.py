"""Moving bytes between descriptors that others may have made, one direction in each call.

Everything blocks, and nothing changes the flags of a descriptor: those are shared with everyone
who holds the same open file. A descriptor that its owner made non-blocking is waited for.
"""

import os
import select
from collections.abc import Callable

from mcpwrap.core.lines import LineBuffer

CHUNK_BYTES = 64 * 1024  # what a Linux pipe holds


def read(fd: int) -> bytes:
    """Return what is there, waiting for it; empty at the end. Also when the other end broke."""
    while True:
        try:
            return os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            _wait(fd, select.POLLIN)
        except ConnectionResetError:
            return b""


def write(fd: int, data: bytes) -> None:
    """Write all of it, waiting where the reader is slow.

    Raises:
        BrokenPipeError: nobody reads any more.
    """
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            _wait(fd, select.POLLOUT)


def relay_lines(from_fd: int, to_fd: int) -> None:
    """Pass on whole lines until the source ends.

    Raises:
        BrokenPipeError: the sink is gone.
        LineTooLongError: a line is over the bound.
    """
    lines = LineBuffer()
    while chunk := read(from_fd):
        if whole := lines.feed(chunk):
            write(to_fd, whole)
    if rest := lines.rest():
        write(to_fd, rest)


def relay_each(from_fd: int, deliver: Callable[[bytes], None]) -> None:
    """Give each piece that arrives to `deliver`, until the source ends."""
    while chunk := read(from_fd):
        deliver(chunk)


def _wait(fd: int, event: int) -> None:
    poll = select.poll()
    poll.register(fd, event)
    poll.poll()
