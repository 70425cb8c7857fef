"""Locks between the sessions of a server, which share its cache. Source: flock(2).

A lock is a file of its own, in a folder that no run sees: a run could lock a folder that it can
read, and so keep its server from using or removing it. The kernel releases the locks of a process
that ends.
"""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

_LOOK_EVERY_S = 0.05
_TIMEOUT_S = 600.0  # its holder runs uv and the compiler, which have time limits

OnWait = Callable[[], None]  # called about each second; an exception from it ends the wait


class LockTimeoutError(Exception):
    """Lock that another process did not release in time."""


class FileLock:
    """Held lock on a name."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._fd != -1:
            os.close(self._fd)
            self._fd = -1

    def remove(self) -> None:
        """Remove the file of the lock. It is held exclusively, and what it is for is gone."""
        self._path.unlink(missing_ok=True)


class FileLocks:
    """Folder of lock files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def share(self, name: str, on_wait: OnWait) -> FileLock:
        """Wait for a lock that others may hold too, but not exclusively.

        Raises:
            LockTimeoutError: another process holds it for too long.
        """
        return self._wait(name, fcntl.LOCK_SH, on_wait)

    def exclude(self, name: str, on_wait: OnWait) -> FileLock:
        """Wait for a lock that no other process holds.

        Raises:
            LockTimeoutError: another process holds it for too long.
        """
        return self._wait(name, fcntl.LOCK_EX, on_wait)

    def try_exclude(self, name: str) -> FileLock | None:
        """Return an exclusive lock; None if another process or thread holds it."""
        return self._try(name, fcntl.LOCK_EX)

    def _wait(self, name: str, kind: int, on_wait: OnWait) -> FileLock:
        """Wait without blocking in flock(2), which could not be cancelled."""
        deadline_s = time.monotonic() + _TIMEOUT_S
        tick_at_s = time.monotonic() + 1.0
        while (lock := self._try(name, kind)) is None:
            now_s = time.monotonic()
            if now_s >= deadline_s:
                raise LockTimeoutError(name)
            if now_s >= tick_at_s:
                on_wait()
                tick_at_s = now_s + 1.0
            time.sleep(_LOOK_EVERY_S)
        return lock

    def _try(self, name: str, kind: int) -> FileLock | None:
        path = self._folder / name
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            if _is_at(path, fd):
                return FileLock(path, fd)
        except BlockingIOError:
            pass
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return None


def _is_at(path: Path, fd: int) -> bool:
    """Return whether the name still is this file: its last holder may have removed it."""
    try:
        found = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(fd))
