"""Blocking relay of bytes in one direction, between descriptors that other processes may share.

The flags of a descriptor are not changed, because every process with the same open file shares
them. A descriptor that its owner made non-blocking is polled.
"""

import errno
import os
import select
from collections.abc import Callable

# The other end broke, or was never connected.
_ENDED = {errno.ECONNRESET, errno.EINVAL, errno.ENOTCONN}
CHUNK_BYTES = 64 * 1024  # what a Linux pipe holds


def read(fd: int) -> bytes:
    """Return the next data, blocking; empty at the end, or if the other end broke."""
    while True:
        try:
            return os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            _wait(fd, select.POLLIN)
        except OSError as error:
            if error.errno not in _ENDED:
                raise
            return b""


def write(fd: int, data: bytes | bytearray) -> None:
    """Write all data, blocking if the reader is slow.

    Raises:
        BrokenPipeError: the other end has no reader any more.
    """
    done = _write_some(fd, data)
    if done == len(data):  # the usual case
        return
    rest = memoryview(data)[done:]
    while rest:
        rest = rest[_write_some(fd, rest) :]


def _write_some(fd: int, data: bytes | bytearray | memoryview) -> int:
    try:
        return os.write(fd, data)
    except BlockingIOError:
        _wait(fd, select.POLLOUT)
        return 0


def relay_each(from_fd: int, deliver: Callable[[bytes], None]) -> None:
    """Pass each piece that arrives to `deliver`, until the source ends."""
    while chunk := read(from_fd):
        deliver(chunk)


def _wait(fd: int, event: int) -> None:
    poll = select.poll()
    poll.register(fd, event)
    poll.poll()
