"""Folders with projects of a person, as `projects` of a server can list them. Reads only."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from mcpwrap.core.project import MARKERS, is_in


def top_of_project(folder: str, home: str) -> str:
    """Return the top of the repository that a folder is in, below the home; else the folder."""
    for path in (Path(folder), *Path(folder).parents):
        if is_in(home, str(path)):
            break
        if _has_marker(path):
            return str(path)
    return folder


def list_for(folder: str, home: str, uid: int) -> str:
    """Return the folder to list for the project that a folder is in; "" if there is none.

    It is the folder above the project, so that its siblings can be opened too. Directly in the
    home, or in a folder of another account, it is the project itself, which then has to be a
    repository: a listed folder is a project itself only if it has a marker of one
    (as_wrapper/project/lookup.py).
    """
    if not _is_own_folder(folder, uid):
        return ""
    real = os.path.realpath(folder)
    if is_in(home, real):
        return ""
    top = top_of_project(real, home)
    above = str(Path(top).parent)
    if not is_in(home, above) and _is_own_folder(above, uid):
        return above
    return top if _has_marker(Path(top)) and _is_own_folder(top, uid) else ""


def lists_for(folders: Iterable[str], home: str, uid: int) -> list[str]:
    """Return the folders to list for these, each once."""
    return list(dict.fromkeys(found for path in folders if (found := list_for(path, home, uid))))


def _has_marker(folder: Path) -> bool:
    return any(os.path.lexists(folder / marker) for marker in MARKERS)


def _is_own_folder(path: str, uid: int) -> bool:
    try:
        info = Path(path).stat()
    except (OSError, ValueError):  # it does not exist, is hidden, or is not a valid path
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == uid
