"""Lookup of a session's project beneath the folders of `projects`, by the agent's own folder.

The path of the agent's folder is only a hint: each folder in it is opened by its name in the one
before, without links, from the listed folder as root mounted it. The last one must be the folder
that the agent has open, by device and inode. From then on the descriptors count, never the path.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from mcpwrap.core.mount_layout import is_writable_at
from mcpwrap.core.project import MARKERS, NoProjectError, Project, is_in
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.wire.server_files import Folder, Workspaces
from mcpwrap.linux.mount import mount_api

_MAX_SHOWN_CHARS = 300
_DEPTH_OF_PROJECTS = 3  # /home/alice/src; a home cannot be listed
_BEHIND_A_LINK = {errno.ELOOP, errno.ENOTDIR}


class ProjectQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Folder to find. Without an inode, root has named it, and any folder there is meant."""

    path: str
    device: int = 0
    inode: int | None = None


@contextmanager
def found(
    server: str, wanted: ProjectQuery, workspaces: Workspaces
) -> Iterator[tuple[Project, int]]:
    """Yield the project of an agent's folder, with a descriptor (O_PATH) of it.

    Raises:
        NoProjectError: the folder is in no listed one, or another than the agent has open.
    """
    lists = workspaces.projects
    listed = next((each for each in lists if is_in(wanted.path, each.path)), None)
    if listed is None:
        raise NoProjectError(_not_listed(server, wanted.path))
    names = wanted.path.removeprefix(listed.path).split("/")[1:]
    fds: list[int] = []
    try:
        _walk(fds, listed, names, wanted.path)
        _expect_same(fds[-1], wanted)
        depth = _depth_of_top(fds, listed)
        _expect_own(fds[depth], wanted.path)
        path = "/".join([listed.path, *names[:depth]])
        yield Project(path, wanted.path, is_writable_at(workspaces, path)), fds[depth]
    finally:
        for fd in fds:
            os.close(fd)


def _walk(fds: list[int], listed: Folder, names: Sequence[str], path: str) -> None:
    try:
        fds.append(mount_api.open_path(listed.path))
        for name in names:
            if name in {"", ".", ".."}:
                raise NoProjectError(f"{_shown(path)} is not a path in its shortest form")
            flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
            fds.append(os.open(name, flags, dir_fd=fds[-1]))
    except OSError as error:
        why = "is behind a symbolic link" if error.errno in _BEHIND_A_LINK else error.strerror or ""
        if error.errno == errno.ENOENT:
            why = "does not exist"
        raise NoProjectError(f"{_shown(path)}: {why}; start the agent again") from error


def _expect_same(fd: int, wanted: ProjectQuery) -> None:
    """Refuse a folder other than the agent has open: a mount over it, or it was replaced."""
    info = os.fstat(fd)
    if wanted.inode is not None and (info.st_dev, info.st_ino) != (wanted.device, wanted.inode):
        raise NoProjectError(
            f"{_shown(wanted.path)} is another file system, or was replaced: "
            "open it again, or use a folder that is not a mount of its own"
        )


def _depth_of_top(fds: Sequence[int], listed: Folder) -> int:
    """Return the depth of the project: the innermost repository, or else the folder itself."""
    last = len(fds) - 1
    for depth in range(last, -1, -1):
        if any(_has(fds[depth], marker) for marker in MARKERS):
            return depth
    if last == 0:
        raise NoProjectError(
            f"{_shown(listed.path)} has all projects in it: start the agent in one of them, or "
            "make it a repository if it is one project"
        )
    return last


def _has(fd: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return False
    return True


def _expect_own(fd: int, path: str) -> None:
    """Refuse a folder that is not the list owner's, who appears as the server's own account."""
    if os.fstat(fd).st_uid != os.geteuid():
        raise NoProjectError(f"{_shown(path)} is in a project of another account")


def _not_listed(server: str, path: str) -> str:
    above = path.rpartition("/")[0]
    is_home = above.count("/") < _DEPTH_OF_PROJECTS
    proposed = path if is_home else above
    return (
        f"{_shown(path)} is in no folder of `projects`: have root add "
        f'"{_shown(proposed)}:rw" to `projects` of [mcp_servers.{server}.mcpwrap], and run '
        "`sudo mcpwrap apply`"
    )


def _shown(path: str) -> str:
    return shown(path, _MAX_SHOWN_CHARS)
