"""RUNS AS ROOT: one at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcpwrap.errors import McpwrapError
from mcpwrap.plan import paths


@contextmanager
def only_one() -> Iterator[None]:
    """Hold the lock of `apply` for the time of the block.

    Raises:
        McpwrapError: another holds it.
    """
    with _lock(fcntl.LOCK_EX | fcntl.LOCK_NB, paths.LOCK):
        yield


@contextmanager
def in_turn(path: str = paths.LOCK) -> Iterator[None]:
    """The same, with this lock, but wait for another to be done."""
    with _lock(fcntl.LOCK_EX, path):
        yield


@contextmanager
def _lock(kind: int, path: str) -> Iterator[None]:
    Path(path).parent.mkdir(mode=0o755, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(fd, kind)
        except BlockingIOError:
            raise McpwrapError(
                "another `mcpwrap apply` or `mcpwrap secret` is at work; nothing was changed",
                where=path,
                fix="wait for it; `fuser -v` on that file names it",
            ) from None
        yield
    finally:
        os.close(fd)
