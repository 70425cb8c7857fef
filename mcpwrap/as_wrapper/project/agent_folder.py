"""Folder of a session's agent, from the gate: a descriptor, or a path that root has named."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from mcpwrap.as_wrapper.project.lookup import ProjectQuery
from mcpwrap.core.project import NoProjectError, is_in
from mcpwrap.linux.mount import open_folder

_NO_FOLDER = (
    "its agent has no current folder that it may read; over HTTP there is none, unless "
    "[mcp_servers.NAME.mcpwrap.http.X] names one"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFolder:
    """Folder of an agent: its descriptor, or else the path that root has named."""

    fd: int | None
    pinned: str
    agent_uid: int


def query(folder: AgentFolder, owner_by_list: Mapping[str, int]) -> ProjectQuery:
    """Return where to look for the project of a session.

    Raises:
        NoProjectError: there is none.
        ValueError: the descriptor is not of a folder that is open for reading.
    """
    if folder.pinned:
        wanted = ProjectQuery(path=folder.pinned)
    elif folder.fd is not None:
        wanted = _wanted(folder.fd)
    else:
        raise NoProjectError(_NO_FOLDER)
    listed = next((path for path in owner_by_list if is_in(wanted.path, path)), None)
    if listed is not None and owner_by_list[listed] != folder.agent_uid:
        raise NoProjectError(f"{listed} belongs to another account than this agent's")
    return wanted


def _wanted(fd: int) -> ProjectQuery:
    """Return the folder, at the path that the kernel shows: a hint, until it was found there."""
    open_folder.expect_folder(fd)
    try:
        path = os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - compared as text
        identity = open_folder.identity_of(fd)
    except OSError as error:
        why = f"nothing is told of the agent's folder: {error.strerror}"
        raise NoProjectError(why) from error
    if not path.isprintable():  # nor is what is not UTF-8, or in a control character
        raise NoProjectError("the path of the agent's folder has a character that is not printable")
    return ProjectQuery(path=path, device=identity.device, inode=identity.inode)
