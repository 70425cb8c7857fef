"""Exclusive locks between root's programs (flock)."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcpwrap.errors import McpwrapError
from mcpwrap.plan import paths

# mcpwrap-resolvers.service takes the lock by itself, for a moment, whenever a network changes.
_PATIENCE_S = 5.0
_LOOK_EVERY_S = 0.05


@contextmanager
def only_one() -> Iterator[None]:
    """Hold the lock of `apply` for the time of the block.

    Raises:
        McpwrapError: another holds it, and not for a moment alone.
    """
    with _opened(paths.LOCK) as fd:
        give_up_at = time.monotonic() + _PATIENCE_S
        while not _take(fd):
            if time.monotonic() >= give_up_at:
                raise McpwrapError(
                    "another `mcpwrap apply` or `mcpwrap secret`, or mcpwrap-resolvers.service, "
                    "is at work; nothing was changed",
                    where=paths.LOCK,
                    fix="wait for it; `fuser -v` on that file names it",
                )
            time.sleep(_LOOK_EVERY_S)
        yield


@contextmanager
def in_turn(path: str = paths.LOCK) -> Iterator[None]:
    """The same, with this lock, but wait for another to be done."""
    with _opened(path) as fd:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield


@contextmanager
def if_free(path: str) -> Iterator[bool]:
    """Hold this lock if nobody does; say whether. "" is one that the caller holds."""
    if not path:
        yield True
        return
    with _opened(path) as fd:
        yield _take(fd)


def _take(fd: int) -> bool:
    """Take the lock if nobody has it; say whether."""
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
