"""Files and folders that a command must read to run: program, interpreter, script, links.

Links are resolved here too, and a path that an earlier session of the server could have redirected
is rejected.
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

_PROGRAM_FOLDERS = frozenset({"bin", "sbin", "shims", ".bin"})  # beside them lies what they need
_INTERPRETERS = re.compile(r"node|nodejs|deno|bun|tsx|python(3(\.\d+)?)?|ruby|perl|php|sh|bash")
_SPLITS = re.compile(r"--s|-[^-=]*S")  # also abbreviated, and after others: env(1)
_PROJECT_FILES = ("package.json", "pyproject.toml")
_NODE_MODULES = "node_modules"
_MAX_CHAIN = 8  # an interpreter may be a script too
# Programs are put here side by side with what is nobody's business.
_SHARED_FOLDERS = (".local", ".local/share", ".local/state", ".config", ".cache")
_TEMPORARY_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - nothing is made there
_MAX_LINKS = 40  # as in the kernel: path_resolution(7)


@dataclass(frozen=True, slots=True)
class CommandContext:
    """Context in which a command is found: working folder, search path, folders not to be given."""

    wide: frozenset[Path]  # of which no program needs all; without links, as the next
    cwd: Path
    path: str  # of $PATH
    to_write: frozenset[Path]  # the server's to change, and so it may have been

    def is_too_wide(self, folder: Path) -> bool:
        """Say whether a folder holds more than one program needs: a home, or what is above it."""
        real = folder.resolve()
        return any(
            wide.is_relative_to(real) or real in {wide / part for part in _SHARED_FOLDERS}
            for wide in self.wide
        )

    def resolve_trusted(self, path: Path) -> Path | None:
        """Return a path without links; None if a server could have made one of them."""
        return resolve_trusted(path, self.to_write)


def wide_folders(home: Path) -> frozenset[Path]:
    """Return everybody's homes, and where temporary files are, those of other sessions too.

    HOME says what it was set to, and root may be at work in the home of somebody else.
    """
    entries = pwd.getpwall()
    with suppress(KeyError):  # in a container; and not all accounts that there are, are listed
        entries.append(pwd.getpwuid(os.geteuid()))
    folders = [tempfile.gettempdir(), *_TEMPORARY_FOLDERS, *(entry.pw_dir for entry in entries)]
    return frozenset({home, *(Path(folder).resolve() for folder in folders)})


def find_program(command: str, place: CommandContext) -> Path | None:
    """Return the program that a command is, as execvp(3) finds it."""
    if "/" in command:
        named = place.cwd / command
        folder = place.resolve_trusted(named.parent) or named.parent
        program = folder / named.name  # itself, if it is a link
        return program if os.access(program, os.X_OK) and program.is_file() else None
    # The caller's own, and that is whose command it is.
    name = shutil.which(command, path=place.path)  # noqa: TID251
    return Path(name) if name else None


def needed_paths(program: Path, arguments: Sequence[str], place: CommandContext) -> set[Path]:
    """Return files and folders, without links, that it has to read; also some that all may.

    None of them was chosen by what the server may write, neither by links nor by a first line: its
    next session would read what it likes.
    """
    folders = {_around(path, place) for path in _chain(program, place)}
    if program.name == "env" and (command := _without_env(arguments)):
        inner = find_program(command[0], place)
        folders |= needed_paths(inner, command[1:], place) if inner else set()
    if script := _script(program, arguments, place):
        folders.add(_project(script, place))
    if not place.is_too_wide(place.cwd):
        folders.add(place.cwd)
    return folders


def named_paths(program: Path, arguments: Sequence[str], place: CommandContext) -> set[Path]:
    """Return the absolute paths by which it is called, and by which it calls: links may be on them.

    Of a word such as `--root=/path` it is what stands behind the sign.
    """
    chain = set(_chain(program, place))
    first_lines = (shebang.interpreter(path) for path in chain - place.to_write)
    return {
        program,
        *chain,
        *(place.cwd / name for name in first_lines if name),
        *(place.cwd / word.rpartition("=")[2] for word in arguments),
        *map(Path, place.path.split(":")),
    }


def resolve_trusted(path: Path, to_write: Collection[Path]) -> Path | None:
    """Return an absolute path without links; None if it leads through what is to be written.

    In such a folder an earlier session of the server may have put a link to anywhere. What is
    below is the server's to read in any case. `to_write` is without links.
    """
    return _walk(path, to_write, {})


def resolve_contained(path: Path, to_write: Collection[Path]) -> Path | None:
    """Return an absolute path without links; None if a server could have led it out of its folders.

    What it leads to within them is the server's in any case.
    """
    if (found := resolve_trusted(path, to_write)) is not None:
        return found
    inside = path.resolve()
    return inside if any(inside.is_relative_to(folder) for folder in to_write) else None


def symlinks_on(path: Path, to_write: Collection[Path]) -> dict[Path, Path]:
    """Return the links on the way of an absolute path, each with its target as it is written.

    The walk ends where `resolve_trusted` gives up.
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
        except OSError:  # it is none, or cannot be looked at
            done /= name
            continue
        found[done / name] = target
        count += 1
        if count > _MAX_LINKS:
            return None
        left += reversed(target.parts)
    return done


def _chain(program: Path, place: CommandContext) -> Iterator[Path]:
    """Yield the program, where a link leads, and in turn what a script is run by."""
    current: Path | None = program
    for _ in range(_MAX_CHAIN):
        if current is None:
            return
        if folder := place.resolve_trusted(current.parent):
            yield folder / current.name
        real = place.resolve_trusted(current)
        if real is None:
            return
        yield real
        name = "" if real in place.to_write else shebang.interpreter(real)
        current = find_program(name, place) if name else None


def _without_env(arguments: Sequence[str]) -> list[str]:
    """Return the command that env(1) runs; none if an option holds words of its own (`-S`)."""
    command = list(dropwhile(lambda word: word.startswith("-") or "=" in word, arguments))
    options = arguments[: len(arguments) - len(command)]
    return [] if any(_SPLITS.match(word) for word in options) else command


def _around(program: Path, place: CommandContext) -> Path:
    """Return the folder in which all of a program lies."""
    parts = program.parts
    if _NODE_MODULES in parts:
        return Path(*parts[: parts.index(_NODE_MODULES) + 1])
    folder = program.parent
    for candidate in (folder.parent if folder.name in _PROGRAM_FOLDERS else folder, folder):
        if not place.is_too_wide(candidate):
            return candidate
    return program


def _script(program: Path, arguments: Sequence[str], place: CommandContext) -> Path | None:
    """Return the file that an interpreter is given to run."""
    if not _INTERPRETERS.fullmatch(program.name):
        return None
    first = next((word for word in arguments if not word.startswith("-")), "")
    script = place.cwd / first
    return place.resolve_trusted(script) if script.is_file() else None


def _project(script: Path, place: CommandContext) -> Path:
    for folder in script.parents:
        if place.is_too_wide(folder):
            break
        if any((folder / name).is_file() for name in _PROJECT_FILES):
            return _around(folder / "x", place)
    return _around(script, place)
