"""Files and folders that a command must read to run: program, interpreter, script, links.

Links are resolved here too. A path that an earlier session of the server could have redirected is
rejected.
"""

import os
import pwd
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

from mcpwrap.linux import shebang

_PROGRAM_FOLDERS = frozenset({"bin", "sbin", "shims", ".bin"})  # beside these: needed files
_INTERPRETERS = re.compile(r"node|nodejs|deno|bun|tsx|python(3(\.\d+)?)?|ruby|perl|php|sh|bash")
_SPLITS = re.compile(r"--s|-[^-=]*S")  # also abbreviated, and after others: env(1)
_PROJECT_FILES = ("package.json", "pyproject.toml")
_NODE_MODULES = "node_modules"
_MAX_CHAIN = 8  # an interpreter may be a script too
# Programs are installed here, and private files are here too.
_SHARED_FOLDERS = (".local", ".local/share", ".local/state", ".config", ".cache")
_TEMPORARY_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - nothing is made there
_MAX_LINKS = 40  # as in the kernel: path_resolution(7)


@dataclass(frozen=True, slots=True)
class CommandContext:
    """Context in which a command is found: working folder, search path, folders not to show."""

    wide: frozenset[Path]  # homes and the like: no program needs all of one; without links
    cwd: Path
    path: str  # of $PATH
    to_write: frozenset[Path]  # an earlier session may have changed these; without links

    def is_too_wide(self, folder: Path) -> bool:
        """Return whether a folder has more than one program needs: a home, or a folder above it."""
        real = folder.resolve()
        return any(
            wide.is_relative_to(real) or real in {wide / part for part in _SHARED_FOLDERS}
            for wide in self.wide
        )

    def resolve_trusted(self, path: Path) -> Path | None:
        """Return a path without links; None if a server could have made one of them."""
        return resolve_trusted(path, self.to_write)


def wide_folders(home: Path) -> frozenset[Path]:
    """Return the homes of all accounts, and the folders of temporary files, of all sessions.

    HOME alone is not enough: it can be set to any value, and root may work in another home.
    """
    entries = pwd.getpwall()
    with suppress(KeyError):  # no entry in a container; and getpwall(3) may not list all accounts
        entries.append(pwd.getpwuid(os.geteuid()))
    folders = [tempfile.gettempdir(), *_TEMPORARY_FOLDERS, *(entry.pw_dir for entry in entries)]
    return frozenset({home, *(Path(folder).resolve() for folder in folders)})


def find_program(command: str, context: CommandContext) -> Path | None:
    """Return the path of a command's program, as execvp(3) finds it."""
    if "/" in command:
        named = context.cwd / command
        folder = context.resolve_trusted(named.parent) or named.parent
        program = folder / named.name  # a link is not resolved
        return program if os.access(program, os.X_OK) and program.is_file() else None
    # The caller's own search path: the command is the caller's too.
    name = shutil.which(command, path=context.path)  # noqa: TID251
    return Path(name) if name else None


def needed_paths(program: Path, arguments: Sequence[str], context: CommandContext) -> set[Path]:
    """Return the files and folders that it has to read, without links; some are readable anyway.

    None of them follows from a link or a first line in files that the server may write: otherwise
    the server would choose what its next session reads.
    """
    folders = {_around(path, context) for path in _chain(program, context)}
    if program.name == "env" and (command := _without_env(arguments)):
        inner = find_program(command[0], context)
        folders |= needed_paths(inner, command[1:], context) if inner else set()
    if script := _script(program, arguments, context):
        folders.add(_project(script, context))
    if not context.is_too_wide(context.cwd):
        folders.add(context.cwd)
    return folders


def named_paths(program: Path, arguments: Sequence[str], context: CommandContext) -> set[Path]:
    """Return the absolute paths by which program and arguments are named: links may be on them.

    Of a word such as `--root=/path` it is what stands behind the sign.
    """
    chain = set(_chain(program, context))
    first_lines = (shebang.interpreter(path) for path in chain - context.to_write)
    return {
        program,
        *chain,
        *(context.cwd / name for name in first_lines if name),
        *(context.cwd / word.rpartition("=")[2] for word in arguments),
        *map(Path, context.path.split(":")),
    }


def resolve_trusted(path: Path, to_write: Collection[Path]) -> Path | None:
    """Return an absolute path without links; None if it leads through a folder of `to_write`.

    In such a folder an earlier session of the server may have put a link to any target. The server
    can read the files below it in any case. `to_write` is without links.
    """
    return _walk(path, to_write, {})


def resolve_contained(path: Path, to_write: Collection[Path]) -> Path | None:
    """Return an absolute path without links; None if the server could have redirected it.

    Within its own folders, the server has access to every target anyway.
    """
    if (found := resolve_trusted(path, to_write)) is not None:
        return found
    inside = path.resolve()
    return inside if any(inside.is_relative_to(folder) for folder in to_write) else None


def symlinks_on(path: Path, to_write: Collection[Path]) -> dict[Path, Path]:
    """Return the links on an absolute path, each with its literal target.

    The walk ends where `resolve_trusted` returns None.
    """
    found: dict[Path, Path] = {}
    _walk(path, to_write, found)
    return found


def _walk(path: Path, to_write: Collection[Path], found: dict[Path, Path]) -> Path | None:
    done, left, count = Path("/"), list(reversed(path.parts)), 0
    while left:
        name = left.pop()
        if name == "..":
            done = done.parent
            continue
        if any(done.is_relative_to(folder) for folder in to_write):
            return None
        try:
            target = (done / name).readlink()
        except OSError:  # it is not a link, or cannot be read
            done /= name
            continue
        found[done / name] = target
        count += 1
        if count > _MAX_LINKS:
            return None
        left += reversed(target.parts)
    return done


def _chain(program: Path, context: CommandContext) -> Iterator[Path]:
    """Yield the program, its real path, and in the same way the interpreters of scripts."""
    current: Path | None = program
    for _ in range(_MAX_CHAIN):
        if current is None:
            return
        if folder := context.resolve_trusted(current.parent):
            yield folder / current.name
        real = context.resolve_trusted(current)
        if real is None:
            return
        yield real
        name = "" if real in context.to_write else shebang.interpreter(real)
        current = find_program(name, context) if name else None


def _without_env(arguments: Sequence[str]) -> list[str]:
    """Return the command that env(1) runs; [] if an option contains the command (`-S`)."""
    command = list(dropwhile(lambda word: word.startswith("-") or "=" in word, arguments))
    options = arguments[: len(arguments) - len(command)]
    return [] if any(_SPLITS.match(word) for word in options) else command


def _around(program: Path, context: CommandContext) -> Path:
    """Return the folder that contains all files of a program."""
    parts = program.parts
    if _NODE_MODULES in parts:
        return Path(*parts[: parts.index(_NODE_MODULES) + 1])
    folder = program.parent
    for candidate in (folder.parent if folder.name in _PROGRAM_FOLDERS else folder, folder):
        if not context.is_too_wide(candidate):
            return candidate
    return program


def _script(program: Path, arguments: Sequence[str], context: CommandContext) -> Path | None:
    """Return the script that an interpreter runs."""
    if not _INTERPRETERS.fullmatch(program.name):
        return None
    first = next((word for word in arguments if not word.startswith("-")), "")
    script = context.cwd / first
    return context.resolve_trusted(script) if script.is_file() else None


def _project(script: Path, context: CommandContext) -> Path:
    for folder in script.parents:
        if context.is_too_wide(folder):
            break
        if any((folder / name).is_file() for name in _PROJECT_FILES):
            return _around(folder / "x", context)
    return _around(script, context)
