"""uv: the program that resolves and unpacks packages, and the only environment that it gets.

It gets no text of an agent but requirements that were parsed, in a file, and no configuration
file; its home and its working folder are empty. It takes wheels only, so that no build runs, and
downloads no interpreter. Source: `uv help pip compile`, `uv help pip install`, of 0.13.9.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from mcpwrap.as_python.packages import child_process
from mcpwrap.as_python.packages.child_process import ChildCommand, ChildResult
from mcpwrap.as_python.packages.file_locks import FileLocks
from mcpwrap.core.environment import UV_PATHS
from mcpwrap.core.execution.packages import package_errors, package_lock
from mcpwrap.core.execution.packages.package_errors import PackageError, Task
from mcpwrap.core.execution.packages.package_lock import PackageLock
from mcpwrap.core.execution.packages.requirements import PackageRequirement, requirements_file
from mcpwrap.linux import remove_tree

_RESOLVE_S = 120.0
_INSTALL_S = 300.0  # the largest wheels have a gigabyte
_COMPILE_S = 120.0
_RETRIES = "1"  # uv's three take 10 s without a network, and then what is cached serves
INDEX_VARIABLES = (
    "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS",
)  # fmt: skip
# Root has set these. The rest of the environment stays away: it can name other indexes.
_PASSED = (
    *INDEX_VARIABLES, "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "https_proxy",
    "http_proxy", "all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
_LOCK = "uv"  # shared by each uv that runs; exclusive for the removal of its cache

OnTick = Callable[[], None]


def find(paths: Sequence[str] = UV_PATHS) -> str | None:
    """Return the path of uv; None if it is not installed."""
    return next((path for path in paths if os.access(path, os.X_OK)), None)


class UvProgram:
    """uv for one interpreter."""

    def __init__(
        self, uv: str, interpreter: str, environ: Mapping[str, str], cache: Path, locks: FileLocks
    ) -> None:
        """`cache` is uv's own: wheels and answers of the index."""
        self._uv = uv
        self._interpreter = interpreter
        self._cache = cache
        self._locks = locks
        self._temporary = environ.get("TMPDIR", "/tmp")  # noqa: S108 - of the session: tempfile
        self._environ = {
            **{name: environ[name] for name in _PASSED if name in environ},
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "UV_CACHE_DIR": str(cache),
            "UV_HTTP_RETRIES": _RETRIES,
        }

    def resolve(self, requirements: Sequence[PackageRequirement], on_tick: OnTick) -> PackageLock:
        """Return a lock for these requirements and all that they require.

        Raises:
            PackageError: they cannot be resolved to wheels of the index.
        """
        with self._folder() as folder:
            given, lock = folder / "requirements.in", folder / "requirements.txt"
            given.write_text(requirements_file(requirements), encoding="ascii")
            arguments = [
                "compile", "--generate-hashes", "--no-header", "--no-annotate",
                f"--output-file={lock}", str(given),
            ]  # fmt: skip
            result = self._run("resolve", arguments, folder, _RESOLVE_S, on_tick)
            package_errors.expect_not_yanked(result.stderr)
            return package_lock.parse(lock.read_text(encoding="utf-8"))

    def install(self, lock: PackageLock, target: Path, on_tick: OnTick) -> None:
        """Unpack the distributions of a lock into a folder, and compile them.

        Raises:
            PackageError: one cannot be downloaded, or has another hash.
        """
        with self._folder() as folder:
            given = folder / "requirements.txt"
            given.write_text(lock.text(), encoding="ascii")
            arguments = [
                # Copies, not links into uv's cache: modes are changed, and that cache is removed.
                "install", "--no-deps", "--require-hashes", "--link-mode=copy",
                f"--target={target}", f"--requirements={given}",
            ]  # fmt: skip
            self._run("install", arguments, folder, _INSTALL_S, on_tick)
            self._compile(target, folder, on_tick)

    def _compile(self, target: Path, folder: Path, on_tick: OnTick) -> None:
        """Write .pyc files, without which a run needs three times as long to import pandas.

        Isolated and without `site`, so that neither a .pth file nor a module of the folder runs. A
        file that is not valid Python stays uncompiled: some packages have files of Python 2.
        """
        command = ChildCommand(
            argv=[
                self._interpreter, "-I", "-S", "-m", "compileall", "-q",
                # The sources never change, so a run need not compare them with the .pyc.
                "--invalidation-mode=unchecked-hash", str(target),
            ],
            environ=self._own_environ(folder),
            folder=folder,
            timeout_s=_COMPILE_S,
        )  # fmt: skip
        try:
            result = child_process.run(command, on_tick)
        except OSError as error:
            raise PackageError(
                f"{self._interpreter} cannot be started: {error.strerror}",
                fix="the operator checks `python` of this server",
                code="E-PACKAGE-INTERPRETER",
            ) from error
        if result.is_timeout:
            raise _timeout("compiling", _COMPILE_S)

    def _run(
        self, task: Task, arguments: Sequence[str], folder: Path, timeout_s: float, on_tick: OnTick
    ) -> ChildResult:
        command = ChildCommand(
            argv=[
                self._uv, "pip", arguments[0], "--no-config", "--color=never", "--no-progress",
                "--only-binary=:all:", "--no-python-downloads", f"--python={self._interpreter}",
                *arguments[1:],
            ],
            environ=self._own_environ(folder),
            folder=folder,
            timeout_s=timeout_s,
        )  # fmt: skip
        lock = self._locks.share(_LOCK, on_tick)
        try:
            result = child_process.run(command, on_tick)
        except OSError as error:
            raise PackageError(
                f"uv cannot be started: {error.strerror}",
                fix="the operator installs uv again",
                code="E-PACKAGE-UV",
            ) from error
        finally:
            lock.release()
        if result.is_timeout:
            raise _timeout("uv", timeout_s)
        if result.status < 0:
            raise PackageError(
                f"uv was ended by signal {-result.status}",
                fix="repeat the call, which uses what was downloaded so far",
                code="E-PACKAGE-KILLED",
            )
        if result.status != 0:
            raise package_errors.of_uv(result.stderr, task)
        return result

    def bound_cache(self, max_bytes: int) -> None:
        """Remove uv's cache if it is over this size and no uv uses it: it saves downloads only."""
        removed = self._cache.with_name(f"{self._cache.name}.removed")
        lock = self._locks.try_exclude(_LOCK)
        if lock is None:
            return
        try:
            remove_tree.remove(str(removed))  # of a process that was killed here
            if self._cache.exists() and _is_over(self._cache, max_bytes):
                # Renamed first: uv takes a cache of which parts are missing for a complete one.
                self._cache.rename(removed)
                remove_tree.remove(str(removed))
        finally:
            lock.release()

    def _own_environ(self, folder: Path) -> dict[str, str]:
        return {**self._environ, "HOME": str(folder), "TMPDIR": str(folder)}

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        """Make a folder for one call: its working folder, its home and its temporary files."""
        with tempfile.TemporaryDirectory(prefix="packages-", dir=self._temporary) as folder:
            yield Path(folder)


def _is_over(folder: Path, max_bytes: int) -> bool:
    try:
        return remove_tree.used_bytes(str(folder), at_most=max_bytes) > max_bytes
    except remove_tree.OddTreeError:
        return True


def _timeout(what: str, seconds: float) -> PackageError:
    return PackageError(
        f"{what} was ended after {seconds:.0f} s",
        fix="repeat the call, which uses what was downloaded so far, or require fewer packages",
        code="E-PACKAGE-TIMEOUT",
    )
