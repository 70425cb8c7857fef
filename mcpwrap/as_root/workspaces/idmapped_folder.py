"""ID-mapped mount of a workspace, under the wrapper's UID, not yet attached to a path."""

import errno
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.core.wire.server_files import Folder, Workspaces
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.mount import idmap, mount_api, mountinfo
from mcpwrap.linux.mount.idmap import Swap
from mcpwrap.linux.mount.mount_api import Attribute

_LINK = "write the path that `realpath` prints"
# Error of openat2(2): problem and fix.
_REASONS = {
    errno.ENOENT: ("does not exist", "make it; the next session tries again"),
    errno.ENOTDIR: ("does not exist: a file is in its path", "give another path"),
    errno.ELOOP: ("is behind a symbolic link, and none is followed", _LINK),
}


@dataclass(frozen=True, slots=True)
class IdmappedMount:
    """Detached mount, which lasts as long as its descriptor."""

    mount_fd: int
    is_folder: bool
    owner_uid: int


class MissingError(McpwrapError):
    """Failure for a folder that does not exist. It may appear later."""


def open_idmapped(folder: Folder, workspaces: Workspaces, wrapper_id: int) -> IdmappedMount:
    """Return a mount of the folder for the wrapper whose UID and GID are `wrapper_id`.

    Raises:
        MissingError: the folder does not exist.
        McpwrapError: this wrapper may not have it, or its file system cannot be ID-mapped.
    """
    fd = _open(folder)
    try:
        owner = _owner(folder, fd, workspaces)
        _expect_reachable(folder)
        mount_fd = _mapped(folder, fd, owner, wrapper_id)
        return IdmappedMount(mount_fd, stat.S_ISDIR(os.fstat(fd).st_mode), owner.pw_uid)
    finally:
        os.close(fd)


def _open(folder: Folder) -> int:
    try:
        return mount_api.open_path(folder.path)
    except OSError as error:
        problem, fix = _REASONS.get(
            error.errno or 0,
            (f"cannot be opened: {error.strerror}", "make sure that root can open it"),
        )
        kind = MissingError if error.errno == errno.ENOENT else McpwrapError
        raise kind(
            f"{folder.path} {problem}", where="workspace", fix=fix, code="E-WORKSPACE-OPEN"
        ) from error


def _owner(folder: Folder, fd: int, workspaces: Workspaces) -> pwd.struct_passwd:
    """Return the agent that owns the folder."""
    info = os.fstat(fd)
    may_be_file = stat.S_ISREG(info.st_mode) and folder not in workspaces.projects
    if not stat.S_ISDIR(info.st_mode) and not may_be_file:
        raise _refusal(
            folder,
            "is neither a folder nor a regular file",
            "give a folder",
            code="E-WORKSPACE-TYPE",
        )
    try:
        owner = pwd.getpwuid(info.st_uid)
    except KeyError:
        raise _refusal(
            folder,
            f"belongs to UID {info.st_uid}, which has no account",
            "give it to an agent with chown(1)",
            code="E-WORKSPACE-OWNER",
        ) from None
    if not _is_agent(owner, workspaces):
        raise _refusal(
            folder,
            f"belongs to {owner.pw_name}, which is not an agent of this server",
            "give a folder that one of its `agents` owns",
            code="E-WORKSPACE-OWNER",
        )
    if _is_home(info, owner):
        raise _refusal(
            folder,
            f"is the home of {owner.pw_name}: with it the server would control the account",
            "give a folder in it, or several",
            code="E-WORKSPACE-HOME",
        )
    return owner


def _is_agent(owner: pwd.struct_passwd, workspaces: Workspaces) -> bool:
    """Return whether the owner is an agent of the server. UID 0 or GID 0 would be swapped too."""
    if 0 in {owner.pw_uid, owner.pw_gid}:
        return False
    groups = os.getgrouplist(owner.pw_name, owner.pw_gid)
    return owner.pw_uid in workspaces.uids or not set(groups).isdisjoint(workspaces.gids)


def _is_home(info: os.stat_result, owner: pwd.struct_passwd) -> bool:
    try:
        return os.path.samestat(info, Path(owner.pw_dir).stat())
    except OSError:
        return False


def _expect_reachable(folder: Folder) -> None:
    """Outside /home the wrapper sees the machine's own folders above it, and must pass them."""
    if folder.path.startswith("/home/"):
        return
    for above in Path(folder.path).parents:
        if not above.stat().st_mode & stat.S_IXOTH:
            problem = f"is in {above}, which other accounts cannot enter"
            raise _refusal(
                folder,
                problem,
                f"`chmod o+x {above}`, or move it to /home",
                code="E-WORKSPACE-UNREACHABLE",
            )


def _mapped(folder: Folder, fd: int, owner: pwd.struct_passwd, wrapper_id: int) -> int:
    """Return a mount of the folder on which the IDs of owner and wrapper are swapped."""
    wanted = Attribute.NO_SETUID | Attribute.NO_DEVICES | Attribute.MAPPED
    if not folder.is_writable:
        wanted |= Attribute.READ_ONLY
    try:
        mount_fd = mount_api.copied(fd)
        namespace_fd = idmap.namespace(
            Swap(owner.pw_uid, wrapper_id), Swap(owner.pw_gid, wrapper_id)
        )
    except OSError as error:
        raise _refusal(
            folder,
            f"cannot be ID-mapped: {error.strerror}",
            "raise user.max_user_namespaces with sysctl(8), if it is 0 or used up",
            code="E-WORKSPACE-NAMESPACE",
        ) from error
    try:
        mount_api.set_attributes(mount_fd, wanted, namespace_fd)
    except OSError as error:
        os.close(mount_fd)
        kind = mountinfo.filesystem_of(fd)
        raise _refusal(
            folder,
            f"is on {kind}, which cannot be ID-mapped ({error.strerror})",
            "move it to ext4, xfs, btrfs or f2fs; tmpfs needs Linux 6.3",
            code="E-WORKSPACE-FILESYSTEM",
        ) from error
    finally:
        os.close(namespace_fd)
    return mount_fd


def _refusal(folder: Folder, problem: str, fix: str, *, code: str) -> McpwrapError:
    return McpwrapError(f"{folder.path} {problem}", where="workspace", fix=fix, code=code)
