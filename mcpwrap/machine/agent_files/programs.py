"""Resolution of the programs and paths in an agent's entry on this machine. Reads only.

Shims of version managers are resolved to the program that they start.
"""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from mcpwrap.config.migration.draft import MigrationError, PathInfo, ResolvedCommand
from mcpwrap.linux import shebang

_MAX_HOPS = 16
_MAX_SETTINGS_CHARS = 65_536
# A folder with one of these is the top of a program's code.
_TOPS = ("package.json", "pyproject.toml", "pyvenv.cfg", "setup.py", "go.mod", "Cargo.toml", ".git")
_PACKAGES = "node_modules"
# Names beside `bin` that an interpreter or a tool needs.
_BESIDE = ("lib", "lib64", "libexec", "share", "pyvenv.cfg")
_CODE = {".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".jar", ".rb", ".php"}
# Every account can see these folders, so nothing in them has to be given to a server.
_EVERYBODYS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc", "/snap", "/nix")


def program(command: str, base: str, home: str, search: str) -> ResolvedCommand | None:
    """Resolve a command. `search` is a PATH; relative commands start at `base`.

    Raises:
        MigrationError: another account could not start it.
    """
    found = _found(command, base, search)
    if found is None:
        return None
    folders: dict[str, None] = {}
    looked_in: dict[str, None] = {}
    todo, seen = [found], set[str]()
    while todo and len(seen) < _MAX_HOPS:
        path = todo.pop()
        # Without this, a script could name any file as its interpreter.
        if path in seen or not _is_program(path):
            continue
        seen.add(path)
        if not _is_everybodys(path):
            folders[_granted_folder(Path(path), home)] = None
        for further, is_searched in _dependencies(Path(path), search):
            todo.append(further)
            if is_searched and not _is_everybodys(further):
                looked_in[str(Path(further).parent)] = None
    return ResolvedCommand(found, tuple(folders), tuple(looked_in))


def with_environments(
    of: ResolvedCommand, paths: Iterable[str], home: str, search: str
) -> ResolvedCommand:
    """Add the folders of the virtual environments in these folders, for a program that runs them.

    Raises:
        MigrationError: another account could not start one of their interpreters.
    """
    folders = dict.fromkeys(of.folders)
    for path in paths:
        if one := program(f"{path}/.venv/bin/python", home, home, search):
            folders |= dict.fromkeys(one.folders)
    return replace(of, folders=tuple(folders))


def is_found(command: str, base: str, search: str) -> bool:
    """Return whether a command is there. `search` is a PATH; relative commands start at `base`."""
    if "/" in command:
        return _is_program(os.path.normpath(Path(base) / command))
    return shutil.which(command, path=search) is not None  # noqa: TID251 - as in `which`


def _found(command: str, base: str, search: str) -> str | None:
    if "/" not in command:
        return which(command, search)
    path = os.path.normpath(Path(base) / command)
    return _start_target(path) if _is_program(path) else None


def _is_program(path: str) -> bool:
    """Return whether a path is a file that can be run. Text that is not a valid path is not."""
    try:
        return Path(path).is_file() and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


def which(name: str, search: str) -> str | None:
    """Return the program of a name in this person's own PATH. Another account will run it."""
    path = shutil.which(name, path=search)  # noqa: TID251 - their PATH is what is asked about
    return _start_target(path) if path else None


def _start_target(path: str) -> str:
    """Return the program that a path starts: its folder without links, and a shim resolved.

    Raises:
        MigrationError: the program of a shim is not known.
    """
    whole = Path(os.path.realpath(Path(path).parent)) / Path(path).name
    if (found := resolve_shim(whole)) is None:
        raise MigrationError(
            f"{path} is a shim, which chooses a version at each start by files of a home; write "
            f"the absolute path of one version, as `which {whole.name}` of its tool (pyenv, asdf, "
            "mise, volta) prints it",
            code="E-MIGRATE-SHIM",
        )
    return found


def resolve_shim(path: Path) -> str | None:
    """Return the program that a shim starts; the path itself if it is not a shim.

    None: the shim has several programs, or none, and the tool chooses at each start by files that a
    server's account does not see. Source: files of pyenv, rbenv, nodenv, asdf, mise and Volta in a
    home.
    """
    if path.parent.name == "shims":
        found = list(_shim_targets(path.parent.parent, path.name))
    elif os.path.lexists(path.parent / "volta-shim"):
        images = path.parent.parent / "tools/image"
        found = [*images.glob(f"*/*/bin/{path.name}"), *images.glob(f"*/@*/*/bin/{path.name}")]
    else:
        return str(path)
    programs = {os.path.realpath(one.parent) for one in found if os.access(one, os.X_OK)}
    return f"{programs.pop()}/{path.name}" if len(programs) == 1 else None


def _shim_targets(root: Path, name: str) -> Iterator[Path]:
    """Yield the programs of a name: of all versions, or of the version that a file names."""
    if (root / "versions").is_dir():
        yield from root.glob(f"versions/{_global_version(root / 'version')}/bin/{name}")
    else:
        yield from root.glob(f"installs/*/*/bin/{name}")


def _global_version(file: Path) -> str:
    """Return the version that applies everywhere; without one it is "system", outside the home."""
    try:
        words = file.read_text(errors="replace").split()
    except OSError:
        return "system"
    return words[0] if words and "/" not in words[0] and "*" not in words[0] else "system"


def _granted_folder(path: Path, home: str) -> str:
    """Return the folder that a server is given for a program. Root follows no link to it.

    Raises:
        MigrationError: it is behind a link whose target is not beside the link.
    """
    folder = _prefix(path, home)
    real = os.path.realpath(folder)
    if folder == real:
        return folder
    both = os.path.commonpath([folder, real])  # contains the link and its target
    if both == str(Path(folder).parent) and _is_narrow(Path(both), home):
        return both
    raise MigrationError(
        f"{path} is behind a link: write the path that `realpath {path}` prints instead",
        code="E-MIGRATE-LINK",
    )


def _is_narrow(folder: Path, home: str) -> bool:
    """Return whether a folder belongs to one tool, and not to all programs of a person."""
    wide = (f"{home}/.local", f"{home}/.local/share", f"{home}/.config", f"{home}/.cache")
    return not Path(home).is_relative_to(folder) and str(folder) not in wide


def _dependencies(path: Path, search: str) -> Iterator[tuple[str, bool]]:
    """Yield the next files of a program: a link's target, its interpreter, or its environment's."""
    if path.is_symlink():
        yield os.path.normpath(path.parent / path.readlink()), False
        yield from ((folder, False) for folder in _home_of_venv(path))
        return
    yield from ((folder, False) for folder in _home_of_venv(path))
    name = shebang.interpreter(path)
    if name.startswith("/"):
        yield name, False
    elif found := which(name, search):
        yield found, True


def _home_of_venv(path: Path) -> list[str]:
    """Return the interpreter from which a virtual environment was made. Source: PEP 405."""
    settings = path.parent.parent / "pyvenv.cfg"
    try:
        if not settings.is_file():  # opening a pipe would block
            return []
        with settings.open(errors="replace") as file:
            lines = file.read(_MAX_SETTINGS_CHARS).splitlines()
    except OSError:
        return []
    by_key = {key.strip(): value.strip() for key, _, value in (x.partition("=") for x in lines)}
    found = Path(by_key.get("home", "")) / "python3"
    return [str(found)] if by_key.get("home", "").startswith("/") else []


def _prefix(path: Path, home: str) -> str:
    """Return the folder of a program: its prefix, if that has libraries and belongs to one tool.

    Without libraries it needs only the folder with its code: ~/.cargo has a token beside `bin`.
    """
    folder = path.parent
    prefix = folder.parent
    is_needed = any(os.path.lexists(prefix / name) for name in _BESIDE)
    if folder.name == "bin" and is_needed and _is_narrow(prefix, home):
        return str(prefix)
    return top_of(path, home)


def top_of(path: Path, home: str) -> str:
    """Return the top of the code that a file belongs to, below a home; else the file's own folder.

    With npm packages in a folder above, it is that folder: node searches for them there.
    """
    above = list(takewhile(lambda folder: not Path(home).is_relative_to(folder), path.parents))
    tops = [folder for folder in above if any(os.path.lexists(folder / top) for top in _TOPS)]
    wider = [folder for folder in tops if os.path.lexists(folder / _PACKAGES)]
    wider += [folder for folder in above if folder.name == _PACKAGES]
    wider += [folder.parent for folder in above[:-1] if folder.name == _PACKAGES]
    return str(min([*wider, *tops[:1]] or [path.parent], key=lambda folder: len(folder.parts)))


def real(path: str) -> str:
    """Return a path with its links resolved."""
    return os.path.realpath(path)


def path_infos(paths: Iterable[str], home: str, uid: int) -> Mapping[str, PathInfo]:
    """Return the paths that have to be given to a server: those that belong to this account."""
    return {path: place for path in paths if (place := _path_info(Path(path), home, uid))}


def folders_of_others(paths: Iterable[str]) -> Mapping[str, PathInfo]:
    """Return the folders among these paths that every account does not see anyway.

    Folders of temporary files are left out: they hold those of all accounts.
    """
    return {
        path: PathInfo(is_folder=True, leads_to="" if real(path) == path else real(path))
        for path in paths
        if not _is_everybodys(path) and _is_common_folder(path)
    }


def _is_common_folder(path: str) -> bool:
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(mode) and not mode & stat.S_ISVTX


def _path_info(path: Path, home: str, uid: int) -> PathInfo | None:
    try:
        there = path if path.exists() else path.parent
        info = there.stat()
    except (OSError, ValueError):  # it does not exist, is hidden, or is not a valid path
        return None
    if info.st_uid != uid or _is_everybodys(str(path)):
        return None
    real = os.path.realpath(path)
    leads_to = real if real != str(path) else ""
    if there != path:
        return PathInfo(is_folder=False, is_there=False, top=str(there), leads_to=leads_to)
    if stat.S_ISDIR(info.st_mode):
        return PathInfo(is_folder=True, leads_to=leads_to)
    is_code = path.suffix in _CODE or os.access(path, os.X_OK)
    top = top_of(path, home) if is_code else _own_folder(path, uid)
    return PathInfo(is_folder=False, is_code=is_code, top=top, leads_to=leads_to)


def _own_folder(path: Path, uid: int) -> str:
    """Return the folder of a file, if it can be given with it; else "".

    This account cannot give a folder of another account. In a folder of repositories their hooks
    would be writable: names are held only at the top of a workspace (core/mount_layout.py).
    """
    folder = path.parent
    if folder.stat().st_uid != uid or any(folder.glob("*/.git")):
        return ""
    return str(folder)


def _is_everybodys(path: str) -> bool:
    return path.startswith(tuple(f"{folder}/" for folder in _EVERYBODYS))
