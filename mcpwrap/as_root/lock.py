"""Exclusive locks between root's programs (flock)."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcpwrap.errors import McpwrapError
from mcpwrap.plan import paths

# mcpwrap-resolvers.service takes the lock unasked, for a moment, whenever a network changes.
_TIMEOUT_S = 5.0
_LOOK_EVERY_S = 0.05


@contextmanager
def only_one() -> Iterator[None]:
    """Hold the lock of `apply` during the block.

    Raises:
        McpwrapError: another process has held it for 5 s.
    """
    with _opened(paths.LOCK) as fd:
        give_up_at = time.monotonic() + _TIMEOUT_S
        while not _take(fd):
            if time.monotonic() >= give_up_at:
                raise McpwrapError(
                    "another `mcpwrap apply` or `mcpwrap secret`, or mcpwrap-resolvers.service, "
                    "is running; nothing was changed",
                    where=paths.LOCK,
                    fix="wait until it has ended; `fuser -v` on that file names the process",
                    code="E-APPLY-LOCKED",
                )
            time.sleep(_LOOK_EVERY_S)
        yield


@contextmanager
def in_turn(path: str = paths.LOCK) -> Iterator[None]:
    """Hold this lock during the block. Wait without a timeout while another process holds it."""
    with _opened(path) as fd:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield


@contextmanager
def if_free(path: str) -> Iterator[bool]:
    """Hold this lock if it is free; yield whether it was. "" stands for a lock the caller holds."""
    if not path:
        yield True
        return
    with _opened(path) as fd:
        yield _take(fd)


def _take(fd: int) -> bool:
    """Take the lock if it is free; return whether it was."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _opened(path: str) -> Iterator[int]:
    Path(path).parent.mkdir(mode=0o755, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)
