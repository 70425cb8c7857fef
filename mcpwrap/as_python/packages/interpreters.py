"""Interpreter of the runs: its version, its platform, and the distributions that it has itself."""

from contextlib import suppress
from pathlib import Path

import msgspec

from mcpwrap.as_python.packages import child_process
from mcpwrap.as_python.packages.child_process import ChildCommand
from mcpwrap.as_python.packages.file_locks import FileLocks
from mcpwrap.core.execution.packages.package_errors import PackageError
from mcpwrap.linux import root_files

_TIMEOUT_S = 20.0
_FILE = "interpreter.json"
# It runs isolated: neither the folder it is in, nor variables, nor packages of an account count.
_PROGRAM = """\
import importlib.metadata, json, platform, sys, sysconfig
found = {}
for each in importlib.metadata.distributions():
    if each.metadata and each.metadata["Name"] and each.version:
        found.setdefault(each.metadata["Name"], each.version)
print(json.dumps({
    "version": platform.python_version(),
    "platform": " ".join([sys.implementation.name, sysconfig.get_platform(),
                          sysconfig.get_config_var("SOABI") or "", *platform.libc_ver()]),
    "distributions": found,
    "paths": [sys.executable, *(path for path in sys.path if path)],
}))
"""


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about an interpreter. `paths` is the program and the folders it imports from."""

    version: str  # as in "3.11.2"
    platform: str
    distributions: dict[str, str]  # version by name
    paths: tuple[str, ...]

    @property
    def identity(self) -> str:
        """Return the version and platform: what is installed for one does not fit another."""
        return f"{self.version} {self.platform}"


class _Cached(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the cached file: the facts, and how `paths` looked when they were read."""

    program: str
    stamps: tuple[tuple[int, int, int], ...]
    facts: Interpreter


def examine(program: str, cache: Path, locks: FileLocks) -> Interpreter:
    """Return the facts about an interpreter, from the cache if neither it nor its folders changed.

    Raises:
        PackageError: it cannot be started, or is not a Python.
    """
    path = cache / _FILE
    try:
        cached = msgspec.json.decode(path.read_bytes(), type=_Cached)
        if cached.program == program and cached.stamps == _stamps(program, cached.facts):
            return cached.facts
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        pass
    facts = _facts_of(program)
    if lock := locks.try_exclude(_FILE):
        stored = _Cached(program=program, stamps=_stamps(program, facts), facts=facts)
        with suppress(OSError):  # it only saves time
            root_files.replace(str(path), msgspec.json.encode(stored).decode())
        lock.release()
    return facts


def _facts_of(program: str) -> Interpreter:
    command = ChildCommand(
        argv=[program, "-I", "-c", _PROGRAM],
        environ={"LC_ALL": "C.UTF-8"},
        folder=Path("/"),
        timeout_s=_TIMEOUT_S,
    )
    try:
        result = child_process.run(command, _nothing)
        return msgspec.json.decode(result.stdout, type=Interpreter)
    except (OSError, msgspec.DecodeError) as error:
        raise PackageError(
            f"{program} cannot be started, or is not a Python interpreter",
            fix="the operator checks `python` of this server",
            code="E-PACKAGE-INTERPRETER",
        ) from error


def _nothing() -> None:
    """Report no progress: it takes less than a second."""


def _stamps(program: str, facts: Interpreter) -> tuple[tuple[int, int, int], ...]:
    """Return inode, time and size of the program and its folders; zeros for one that is not there.

    Installing or removing a distribution changes the time of its folder.
    """
    return tuple(map(_stamp, (program, *facts.paths)))


def _stamp(path: str) -> tuple[int, int, int]:
    try:
        found = Path(path).stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_size
