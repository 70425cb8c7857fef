"""Content-addressed folders of installed packages, which all sessions of a server share.

    environments/NAME    finished, read-only to runs; its time is that of its last use
    builds/NAME-RANDOM   being built, or being removed
    locks/NAME           shared while a run uses the environment, exclusive to build or remove it

A folder in `builds` whose lock is free was left by a process that was killed. Its name is random,
because a uv that outlives that process for a moment may still write into it.
"""

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from mcpwrap.as_python.packages.file_locks import FileLock, FileLocks, OnWait
from mcpwrap.core.execution.packages.package_errors import PackageError
from mcpwrap.linux import remove_tree

_NAME = re.compile(r"[0-9a-f]{64}")
_BUILD = re.compile(r"([0-9a-f]{64})-\w+")
_ATTEMPTS = 5
_UV_LOCK = ".lock"  # uv's own, of an installation that is complete

Build = Callable[[Path], None]  # fills a folder


class EnvironmentStore:
    """Environments of one server, of `max_bytes` together. Threads and processes may share it."""

    def __init__(self, cache: Path, locks: FileLocks, max_bytes: int) -> None:
        self._environments = cache / "environments"
        self._builds = cache / "builds"
        self._locks = locks
        self._max_bytes = max_bytes
        # A run has another account, and is let into this one folder of the cache.
        for folder, mode in ((self._environments, 0o755), (self._builds, 0o700)):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(mode)

    def open(self, name: str, build: Build, on_wait: OnWait) -> FileLock:
        """Return a lock that holds an environment, which is built first if it is missing.

        Raises:
            PackageError: as `build` raises it, or the environment is too large.
            LockTimeoutError: another session builds it for too long.
            OSError: the disk is full.
        """
        for _ in range(_ATTEMPTS):
            held = self._locks.share(name, on_wait)
            if self._touched(name):
                return held
            held.release()
            # Not by an upgrade of the lock: flock(2) releases the first before it takes the second.
            building = self._locks.exclude(name, on_wait)
            try:
                if not (self._environments / name).exists():
                    self._build(name, build)
            except BaseException:
                building.remove()
                raise
            finally:
                building.release()
        raise PackageError(
            "the packages were removed from the cache as often as they were installed",
            fix="the operator gives this server more cache, or fewer packages",
            code="E-PACKAGE-TOO-LARGE",
        )

    def _touched(self, name: str) -> bool:
        """Return whether the environment exists; its time becomes now."""
        try:
            os.utime(self._environments / name)
        except FileNotFoundError:
            return False
        return True

    def _build(self, name: str, build: Build) -> None:
        """Build an environment, whose exclusive lock is held."""
        self._remove_leftovers(name)
        folder = self._new_build(name)
        try:
            build(folder)
            _make_readable(folder)
            self._expect_fits(folder)
            folder.rename(self._environments / name)
        except BaseException:
            remove_tree.remove(str(folder))
            raise
        self._evict(name)

    def _expect_fits(self, folder: Path) -> None:
        if self._size(folder) > self._max_bytes:
            raise PackageError(
                f"the packages take more than {self._max_bytes // 1024**2} MiB",
                fix="require fewer packages; the operator sets the size of the cache",
                code="E-PACKAGE-TOO-LARGE",
            )

    def _remove_leftovers(self, own: str) -> None:
        for path in self._builds.iterdir():
            if not (found := _BUILD.fullmatch(path.name)):
                continue
            if found[1] == own:
                remove_tree.remove(str(path))
            elif lock := self._locks.try_exclude(found[1]):
                self._remove(path, lock)

    def _new_build(self, name: str) -> Path:
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._builds))

    def _evict(self, own: str) -> None:
        """Remove the environments that were not used for longest; none that a run uses."""
        sizes = {path: self._size(path) for path in _named(self._environments)}
        used = sum(sizes.values())
        for path in sorted(sizes, key=_used_at):
            if used <= self._max_bytes:
                return
            if path.name == own or (lock := self._locks.try_exclude(path.name)) is None:
                continue
            used -= sizes[path]
            removed = self._new_build(path.name)
            # Renamed first: a process that is killed here leaves no half environment.
            with suppress(FileNotFoundError):  # another session has evicted it
                path.rename(removed)
            self._remove(removed, lock)

    @staticmethod
    def _remove(path: Path, lock: FileLock) -> None:
        remove_tree.remove(str(path))
        lock.remove()
        lock.release()

    def _size(self, folder: Path) -> int:
        """Return the disk usage; that of a folder which cannot be counted is over the bound."""
        try:
            return remove_tree.used_bytes(str(folder), at_most=self._max_bytes)
        except FileNotFoundError:
            return 0
        except remove_tree.OddTreeError:
            return self._max_bytes + 1


def _named(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def _used_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _make_readable(folder: Path) -> None:
    """Make folders and files readable to each account, and remove all that is neither.

    A wheel chooses the modes of its files. Those of a program stay executable.
    """
    (folder / _UV_LOCK).unlink(missing_ok=True)
    folder.chmod(0o755)
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent) / name for name in (*folders, *files)):
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                path.chmod(0o755)
            elif stat.S_ISREG(mode):
                path.chmod(0o755 if mode & 0o100 else 0o644)
            else:
                path.unlink()
