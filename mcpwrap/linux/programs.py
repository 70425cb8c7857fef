"""What a command and a path of an agent's entry are on this machine. Reads only."""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mcpwrap.config.proposals.draft import Place, Program

_MAX_HOPS = 16
_MAX_LINE_BYTES = 4096
_MAX_SETTINGS_CHARS = 65_536
# Where the code of a program lies, as one: a folder with one of these.
_TOPS = ("package.json", "pyproject.toml", "pyvenv.cfg", "setup.py", "go.mod", "Cargo.toml", ".git")
_CODE = {".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".jar", ".rb", ".php"}
# Every account sees these, so nothing of them has to be given to one.
_EVERYBODYS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc", "/snap", "/nix")


def program(command: str, base: str, home: str, search: str) -> Program | None:
    """Return what a command is: `search` is a PATH, `base` where relative ones begin."""
    found = _found(command, base, search)
    if found is None:
        return None
    folders: dict[str, None] = {}
    looked_in: dict[str, None] = {}
    todo, seen = [found], set[str]()
    while todo and len(seen) < _MAX_HOPS:
        path = todo.pop()
        if path in seen or not _is_program(path):  # else a script could name anything as its own
            continue
        seen.add(path)
        if not _is_everybodys(path):
            folders[_prefix(Path(path), home)] = None
        for further, is_searched in _further(Path(path), search):
            todo.append(further)
            if is_searched and not _is_everybodys(further):
                looked_in[str(Path(further).parent)] = None
    return Program(found, tuple(folders), tuple(looked_in))


def _found(command: str, base: str, search: str) -> str | None:
    if "/" not in command:
        return which(command, search)
    path = os.path.normpath(Path(base) / command)
    return path if _is_program(path) else None


def _is_program(path: str) -> bool:
    """Say whether it is a file that can be run. What no path can be is none."""
    try:
        return Path(path).is_file() and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


def which(name: str, search: str) -> str | None:
    """Return what this person's own PATH has under a name; it is run as somebody else."""
    return shutil.which(name, path=search)  # noqa: TID251 - their PATH is what is asked about


def _further(path: Path, search: str) -> Iterator[tuple[str, bool]]:
    """Yield what else a program needs: where it leads, its interpreter, its interpreter's own."""
    if path.is_symlink():
        yield os.path.normpath(path.parent / path.readlink()), False
        yield from ((folder, False) for folder in _home_of_venv(path))
        return
    yield from ((folder, False) for folder in _home_of_venv(path))
    try:
        with path.open("rb") as file:
            line = file.read(_MAX_LINE_BYTES).split(b"\n", 1)[0]
    except OSError:
        return
    if not line.startswith(b"#!"):
        return
    words = os.fsdecode(line[2:]).split()
    if words and Path(words[0]).name == "env":
        name = next((word for word in words[1:] if word[0] != "-" and "=" not in word), "")
        if found := which(name, search):
            yield found, True
    elif words and words[0].startswith("/"):
        yield words[0], False


def _home_of_venv(path: Path) -> list[str]:
    """Return the interpreter from which a virtual environment was made. Source: PEP 405."""
    settings = path.parent.parent / "pyvenv.cfg"
    try:
        if not settings.is_file():  # a pipe would be waited for
            return []
        with settings.open(errors="replace") as file:
            lines = file.read(_MAX_SETTINGS_CHARS).splitlines()
    except OSError:
        return []
    by_key = {key.strip(): value.strip() for key, _, value in (x.partition("=") for x in lines)}
    found = Path(by_key.get("home", "")) / "python3"
    return [str(found)] if by_key.get("home", "").startswith("/") else []


def _prefix(path: Path, home: str) -> str:
    """Return the folder of a program: what it was installed under, if that holds no more."""
    folder = path.parent
    prefix = folder.parent
    holds_more = Path(home).is_relative_to(prefix) or str(prefix) == f"{home}/.local"
    if folder.name == "bin" and not holds_more:
        return str(prefix)
    return top_of(path, home)


def top_of(path: Path, home: str) -> str:
    """Return the folder of the code that a file belongs to, below a home; or its own folder."""
    for folder in path.parents:
        if Path(home).is_relative_to(folder):
            break
        if any(os.path.lexists(folder / name) for name in _TOPS):
            return str(folder)
    return str(path.parent)


def real(path: str) -> str:
    """Return a path without links in it."""
    return os.path.realpath(path)


def places(paths: Iterable[str], home: str, uid: int) -> Mapping[str, Place]:
    """Return those of these paths that have to be given to a server: what is this account's."""
    return {path: place for path in paths if (place := _place(Path(path), home, uid))}


def _place(path: Path, home: str, uid: int) -> Place | None:
    try:
        there = path if path.exists() else path.parent
        info = there.stat()
    except (OSError, ValueError):  # it is nowhere, nobody's to see, or what no path can be
        return None
    if info.st_uid != uid or _is_everybodys(str(path)):
        return None
    if there != path:
        is_home = Path(home).is_relative_to(there)
        return None if is_home else Place(is_folder=False, is_there=False, top=str(there))
    if stat.S_ISDIR(info.st_mode):
        return Place(is_folder=True)
    is_code = path.suffix in _CODE or os.access(path, os.X_OK)
    top = top_of(path, home) if is_code else str(path.parent)
    return Place(is_folder=False, is_code=is_code, top=top)


def _is_everybodys(path: str) -> bool:
    return path.startswith(tuple(f"{folder}/" for folder in _EVERYBODYS))
