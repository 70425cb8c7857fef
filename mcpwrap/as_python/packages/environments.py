"""Packages of a run: requirements become a lock, and the lock an environment that runs can read.

Both steps are cached in the cache folder of the server, so that a second run needs no network:

    resolutions/KEY.json   lock of some requirements; fresh for 24 h, later used without an index
    environments/NAME      installed packages; see `environment_store`
    uv/                    uv's own cache, at most half of the bound of the environments
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Self

from mcpwrap.as_python.packages import interpreters, resolutions, uv_program
from mcpwrap.as_python.packages.environment_store import EnvironmentStore
from mcpwrap.as_python.packages.file_locks import FileLock, FileLocks, LockTimeoutError
from mcpwrap.as_python.packages.interpreters import Interpreter
from mcpwrap.as_python.packages.resolutions import Resolution, Resolutions
from mcpwrap.as_python.packages.uv_program import UvProgram
from mcpwrap.core.environment import UV_PATHS
from mcpwrap.core.execution.packages.package_errors import PackageError
from mcpwrap.core.execution.packages.package_lock import PackageLock
from mcpwrap.core.execution.packages.requirements import PackageRequirement, merge
from mcpwrap.errors import NO_ROOM

OnProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PreparedEnvironment:
    """Environment that is held against eviction until it is closed.

    `name` is 64 hexadecimal digits, or "" if no packages are added to those of the interpreter.
    `distributions` is the version of each distribution in it.
    """

    name: str = ""
    distributions: Mapping[str, str] = field(default_factory=dict)
    _lock: FileLock | None = None

    def close(self) -> None:
        """Release the environment; a second call does nothing."""
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class PackageEnvironments:
    """Environments of one Python server. Threads may share it, and sessions share its folder."""

    def __init__(
        self,
        cache: Path,
        interpreter: str,
        max_bytes: int,
        environ: Mapping[str, str],
        *,
        uv_paths: Sequence[str] = UV_PATHS,
    ) -> None:
        """`max_bytes` bounds the environments together; uv's cache may take half as much again.

        `environ` has the proxy, the certificates and the index; see `uv_program`.
        """
        self._cache = cache
        self._program = interpreter
        self._max_bytes = max_bytes
        self._index = "\n".join(
            f"{name}={environ.get(name, '')}" for name in uv_program.INDEX_VARIABLES
        )
        for folder in ("locks", "resolutions", "uv"):  # closed to runs
            (cache / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # another session removes uv's, and uv makes it anew
                (cache / folder).chmod(0o700)
        self._locks = FileLocks(cache / "locks")
        self._resolutions = Resolutions(cache / "resolutions")
        self._store = EnvironmentStore(cache, self._locks, max_bytes)
        uv = uv_program.find(uv_paths)
        self._uv = UvProgram(uv, interpreter, environ, cache / "uv", self._locks) if uv else None

    @property
    def has_uv(self) -> bool:
        """Return whether packages can be installed; without uv runs have the interpreter's own."""
        return self._uv is not None

    @cached_property
    def interpreter(self) -> Interpreter:
        """Version, platform and own distributions of the interpreter.

        Raises:
            PackageError: it cannot be started, or is not a Python.
        """
        return interpreters.examine(self._program, self._cache, self._locks)

    def prepare(self, requirements: Sequence[str], on_progress: OnProgress) -> PreparedEnvironment:
        """Return an environment with these packages and all that they require.

        `on_progress` gets a line about every second. An exception from it, other than an OSError,
        ends the work and its processes at once, and is raised.

        Raises:
            PackageError: a requirement is not valid, or cannot be satisfied.
        """
        wanted = merge(requirements)
        if not wanted:
            return PreparedEnvironment()
        if self._uv is None:
            raise PackageError(
                "no packages can be installed: uv is not on this machine",
                fix="use the standard library; the operator installs uv as /usr/local/bin/uv",
                code="E-PACKAGE-NO-UV",
            )
        with _translated_errors():
            return self._prepared(self._uv, wanted, on_progress)

    def _prepared(
        self, uv: UvProgram, wanted: Sequence[PackageRequirement], on_progress: OnProgress
    ) -> PreparedEnvironment:
        key = resolutions.key(wanted, self.interpreter.identity, self._index)
        lock = self._resolved(uv, key, wanted, on_progress)
        if not lock.distributions:  # markers exclude each of them
            return PreparedEnvironment()
        name = lock.environment_name(self.interpreter.identity)
        on_tick = _ticks(on_progress, f"installing {len(lock.distributions)} packages")
        try:
            held = self._store.open(name, partial(self._install, uv, lock, on_tick), on_tick)
        except PackageError as error:
            if not error.lacks_index:
                self._resolutions.forget(key)  # perhaps the index has replaced or lost a file
            raise
        return PreparedEnvironment(name, lock.versions(), held)

    def _install(
        self, uv: UvProgram, lock: PackageLock, on_tick: Callable[[], None], folder: Path
    ) -> None:
        try:
            uv.install(lock, folder, on_tick)
        finally:  # what was downloaded stays, also if it could not be installed
            uv.bound_cache(self._max_bytes // 2)

    def _resolved(
        self,
        uv: UvProgram,
        key: str,
        wanted: Sequence[PackageRequirement],
        on_progress: OnProgress,
    ) -> PackageLock:
        """Return the lock of the requirements: a fresh one, or without an index the last one."""
        if found := self._fresh(key):
            return found
        on_tick = _ticks(on_progress, f"resolving {len(wanted)} packages")
        resolving = self._locks.exclude(f"resolution-{key}", on_tick)
        try:
            if found := self._fresh(key):  # another session has resolved them meanwhile
                return found
            return self._resolve(uv, key, wanted, on_progress)
        finally:
            resolving.remove()
            resolving.release()

    def _resolve(
        self,
        uv: UvProgram,
        key: str,
        wanted: Sequence[PackageRequirement],
        on_progress: OnProgress,
    ) -> PackageLock:
        now_s = time.time()
        try:
            lock = uv.resolve(wanted, _ticks(on_progress, f"resolving {len(wanted)} packages"))
        except PackageError as error:
            stored = self._resolutions.read(key)
            if not error.lacks_index or stored is None:
                raise
            hours = max(0, round((now_s - stored[0].at_s) / 3600))
            on_progress(f"{error.problem}: the versions of {hours} h ago are used")
            return stored[1]
        self._resolutions.write(key, Resolution(at_s=now_s, lock=lock.text()))
        return lock

    def _fresh(self, key: str) -> PackageLock | None:
        stored = self._resolutions.read(key)
        return stored[1] if stored and stored[0].is_fresh(time.time()) else None


def _ticks(on_progress: OnProgress, what: str) -> Callable[[], None]:
    """Return a callback that reports what is done, and since when."""
    begun_s = time.monotonic()
    return lambda: on_progress(f"{what}, {time.monotonic() - begun_s:.0f} s")


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Replace errors of files and locks by a PackageError."""
    try:
        yield
    except LockTimeoutError as error:
        raise PackageError(
            "another session has been installing these packages for too long",
            fix="repeat the call later",
            code="E-PACKAGE-BUSY",
        ) from error
    except OSError as error:
        code = "E-PACKAGE-NO-ROOM" if error.errno in NO_ROOM else "E-PACKAGE-CACHE"
        raise PackageError(
            f"the cache of packages cannot be written: {error.strerror or 'unknown error'}",
            fix="the operator makes room in the cache of this server, or repairs it",
            code=code,
        ) from error
