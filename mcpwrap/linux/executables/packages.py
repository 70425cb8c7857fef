"""Packages that hold a program, or from which it loads code: node_modules, Python environments."""

import os
import re
import stat
from collections.abc import Iterator
from glob import escape, glob

from mcpwrap.linux.executables.ownership import MissingPath, Ownership, OwnershipFlaw, ResolvedPath

_MODULES = "node_modules"
_VENV = "pyvenv.cfg"  # PEP 405
_MARKS = ("package.json", _MODULES, _VENV)
_LIBRARY = "lib*/p*y*"  # `python3.11`, `pypy3.10`
_SITE_PACKAGES = f"{_LIBRARY}/*-packages"  # Debian's are `dist-packages`
_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_MAX_ENTRIES = 500_000
_MAX_TEXT_BYTES = 65_536
_DISTRIBUTION = ("/usr/", "/bin/", "/lib/", "/lib64/", "/sbin/")
_LOCAL = "/usr/local/"
_SYSTEM_TOO = re.compile(r"(?im)^include-system-site-packages\s*=\s*true")
_QUOTED_PATH = re.compile(r"['\"](/[^'\"]+)['\"]")
_CODE = re.compile(
    r".+\.([cm]?[jt]sx?|py[cz]?|so(\.\d+)*|rb|p[lm]|sh|jar|class|dll|node|wasm|lua|php|jl|r|R)"
    r"|.+\.(deps|runtimeconfig)\.json|__pycache__"
)
_SHARED = re.compile(r"/[^/]*(/s?bin)?|.*/s?bin")  # folders of many programs


def marks(path: str, real: str) -> Iterator[str]:
    """Yield the files beside and above a program that decide from where it loads code."""
    for folder in dict.fromkeys([*_above(path), *_above(real)]):
        yield from filter(os.path.lexists, (os.path.join(folder, name) for name in _MARKS))
        if os.path.lexists(os.path.join(folder, _VENV)):
            yield from glob(os.path.join(escape(folder), _SITE_PACKAGES))
            yield from _home_of_venv(os.path.join(folder, _VENV))
    if _PYTHON.fullmatch(os.path.basename(real)):
        prefix = os.path.dirname(os.path.dirname(real))
        for top in dict.fromkeys([prefix, *([_LOCAL] if prefix == "/usr" else [])]):
            yield from glob(os.path.join(escape(top), _SITE_PACKAGES))


def top_of(path: str, real: str) -> str:
    """Return the folder of a program with all its own code; "" if it has no such folder.

    Files of the distribution are left out: its package manager installs them as root.
    """
    for one in (real, path):
        if not is_distributions(one):
            if _MODULES in (parts := one.split("/")):
                return "/".join(parts[: parts.index(_MODULES) + 1])
            for folder in _above(one):
                if any(os.path.lexists(os.path.join(folder, name)) for name in _MARKS):
                    return folder
    return ""


def libraries(path: str, real: str) -> Iterator[str]:
    """Yield further folders from which a program loads packages.

    Hoisted modules are above the package. `.pth` files are read at each start of python.
    """
    prefixes: list[str] = []
    is_apart = False  # the environment does not use the machine's own packages
    for folder in dict.fromkeys([*_above(path), *_above(real)]):
        if os.path.isdir(modules := os.path.join(folder, _MODULES)):
            yield modules
        if settings := _text(os.path.join(folder, _VENV)):
            is_apart |= not _SYSTEM_TOO.search(settings)
            prefixes += map(os.path.dirname, _home_of_venv(os.path.join(folder, _VENV)))
    if _PYTHON.fullmatch(os.path.basename(real)):
        prefixes += [os.path.dirname(os.path.dirname(real))]
    for prefix in prefixes:
        if not is_distributions(f"{prefix}/"):
            yield from glob(os.path.join(escape(prefix), _LIBRARY))
        elif prefix == "/usr" and not is_apart:
            yield from glob(os.path.join(_LOCAL, _SITE_PACKAGES))


def flaws_below(top: str, own: Ownership) -> Iterator[OwnershipFlaw]:
    """Yield the flaws in a folder, and in the folders to which its links lead."""
    todo, seen, count = [top], {top}, 0
    while todo:
        folder = todo.pop()
        entries = _entries(folder)
        count += len(entries)
        if count > _MAX_ENTRIES:
            yield OwnershipFlaw(top, f"holds over {_MAX_ENTRIES} files, more than are checked")
            return
        found = [
            *(_looked_at(entry, own) for entry in entries),
            *(own.walk(path) for path in _elsewhere(folder)),
        ]
        yield from (one for one in found if isinstance(one, OwnershipFlaw))
        folders = [one.path for one in found if isinstance(one, ResolvedPath) and one.is_folder]
        further = [path for path in folders if path not in seen and not is_distributions(path)]
        seen.update(further)
        todo += further


def _looked_at(
    entry: "os.DirEntry[str]", own: Ownership
) -> ResolvedPath | MissingPath | OwnershipFlaw:
    if entry.is_symlink():
        return own.walk(entry.path)
    try:
        info = entry.stat(follow_symlinks=False)
    except OSError:  # it was removed meanwhile
        return MissingPath(entry.path)
    if problem := own.problem(info):
        return OwnershipFlaw(entry.path, problem)
    return ResolvedPath(entry.path, is_folder=stat.S_ISDIR(info.st_mode), is_file=False)


def flaws_beside(path: str, own: Ownership) -> Iterator[OwnershipFlaw]:
    """Yield the flaws of code beside and below a file that is in no package, and of its folders.

    Other files there are data, which may belong to any account.
    """
    top = os.path.dirname(path)
    todo = [top, *_libraries_of(top)]
    seen, count = {*todo}, 0
    while todo:
        folder = todo.pop()
        entries = [] if is_distributions(f"{folder}/") else _entries(folder)
        count += len(entries)
        if count > _MAX_ENTRIES:
            yield OwnershipFlaw(top, f"holds over {_MAX_ENTRIES} files, more than are checked")
            return
        code = [entry.path for entry in entries if _CODE.fullmatch(entry.name)]
        found = [own.walk(one) for one in (folder, *code)] if code else []
        yield from (one for one in found if isinstance(one, OwnershipFlaw))
        if not _SHARED.fullmatch(folder):
            folders = {os.path.realpath(entry.path) for entry in entries if entry.is_dir()} - seen
            seen.update(folders)
            todo += sorted(folders)


def _libraries_of(folder: str) -> list[str]:
    """Return the folders that a program in its own `bin` searches for its libraries."""
    prefix, name = os.path.split(folder)
    is_own = name == "bin" and not _SHARED.fullmatch(prefix) and f"{prefix}/" != _LOCAL
    return [os.path.join(prefix, "lib"), os.path.join(prefix, "libexec")] if is_own else []


def _above(path: str) -> list[str]:
    folders = []
    while (folder := os.path.dirname(path)) != path:
        folders.append(folder)
        path = folder
    return folders


def is_distributions(path: str) -> bool:
    """Return whether a path is in a folder of the package manager, which installs as root."""
    return path.startswith(_DISTRIBUTION) and not path.startswith(_LOCAL)


def _entries(folder: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:  # root can list everything; another account cannot load from such a folder
        return []


def _home_of_venv(settings: str) -> Iterator[str]:
    for line in _text(settings).splitlines():
        key, _, value = line.partition("=")
        if key.strip().lower() == "home" and value.strip().startswith("/"):
            yield value.strip()


def _elsewhere(folder: str) -> Iterator[str]:
    """Yield the further folders that a folder of Python packages names.

    Source: docs.python.org, site; setuptools, Development Mode, which maps names in a finder, as
    do meson-python and scikit-build-core.
    """
    if folder.endswith("-packages"):
        for path in glob(os.path.join(escape(folder), "*.pth")):
            for line in _text(path).splitlines():
                if line.startswith(("import ", "import\t")):
                    yield from _QUOTED_PATH.findall(line)
                elif line.strip() and not line.startswith("#"):
                    yield os.path.join(folder, line.rstrip())
        for path in glob(os.path.join(escape(folder), "*_editable*.py")):
            yield from _QUOTED_PATH.findall(_text(path))


def _text(path: str) -> str:
    try:
        if not os.path.isfile(path):  # opening a pipe would block
            return ""
        with open(path, errors="replace") as file:
            return file.read(_MAX_TEXT_BYTES)
    except OSError:
        return ""
