"""Project of a session: its folder, the agent's variables that name it, and its place in `args`."""

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from mcpwrap.core.mount_layout import is_below
from mcpwrap.core.names import PROJECT

PROJECT_REFERENCE = f"${{{PROJECT}}}"
# Entries by which a folder is the top of a repository or of a worktree.
MARKERS = (".git", ".hg", ".jj", ".sl")
# Variables in which agents name the folder that is open. They reach the server only with a folder
# of its project as their value.
VARIABLES = (
    "CLAUDE_PROJECT_DIR", "CODEX_WORKSPACE_ROOT", "GEMINI_PROJECT_DIR", "CURSOR_PROJECT_DIR",
    "WORKSPACE_FOLDER_PATHS", "INIT_CWD",
)  # fmt: skip
MAX_PATH_CHARS = 4096  # PATH_MAX of limits.h, in bytes


@dataclass(frozen=True, slots=True)
class Project:
    """Project that a session sees, and the folder in it in which its server starts."""

    path: str
    cwd: str
    is_writable: bool


class SeenProject(msgspec.Struct, frozen=True):
    """Project of an open session, as the gate reports it to `mcpwrap sessions`."""

    session: str  # the wrapper's id
    uid: int  # the agent's
    path: str


def encode_seen(seen: Sequence[SeenProject]) -> str:
    """Return projects of sessions as JSON."""
    return msgspec.json.encode(seen).decode()


def decode_seen(text: str) -> list[SeenProject]:
    """Return the projects of sessions in a text.

    Raises:
        msgspec.MsgspecError: the text is malformed, or was cut off.
    """
    return msgspec.json.decode(text, type=list[SeenProject])


class NoProjectError(Exception):
    """Reason why a session has no project, in one line, with what to do."""


def variables(project: Project, of_agent: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that name the project: the folder, and the agent's own that lie in it.

    A value is a path in its shortest form: another one could lead out of the project by `..`.
    """
    checked = {
        name: value
        for name, value in of_agent.items()
        if name in VARIABLES and is_in(value, project.path) and posixpath.normpath(value) == value
    }
    return {"PWD": project.cwd, **checked}


def is_in(path: str, folder: str) -> bool:
    """Return whether a path is a folder, or lies in it."""
    return path == folder or is_below(path, folder)


def is_project(path: str, folders: Iterable[str]) -> bool:
    """Return whether a printable path, in its shortest form, is in one of these folders."""
    is_plain = path.isprintable() and posixpath.normpath(path) == path
    is_plain &= len(path) <= MAX_PATH_CHARS
    return is_plain and any(is_in(path, folder) for folder in folders)


def names_project(args: Iterable[str]) -> bool:
    """Return whether an argument has a reference to the session's project."""
    return any(PROJECT_REFERENCE in argument for argument in args)


def filled_in(args: Sequence[str], path: str) -> list[str]:
    """Return the arguments with the project's path in place of each reference."""
    return [argument.replace(PROJECT_REFERENCE, path) for argument in args]
