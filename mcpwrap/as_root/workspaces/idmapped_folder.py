"""Idmapped mount of an agent's folder, under the wrapper's UID, not attached anywhere yet."""

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
# What openat2(2) says, and what to do.
_WHY = {
    errno.ENOENT: ("is not there", "make it; the next session tries again"),
    errno.ENOTDIR: ("is not there: a file is in the way", "give another path"),
    errno.ELOOP: ("is behind a symbolic link, and none is followed", _LINK),
}


@dataclass(frozen=True, slots=True)
class IdmappedMount:
    """Detached mount, which goes away with its descriptor."""

    mount_fd: int
    is_folder: bool


class MissingError(McpwrapError):
    """Error for a folder that is not there. It may appear later."""


def open_idmapped(folder: Folder, workspaces: Workspaces, wrapper_id: int) -> IdmappedMount:
    """Return the folder as the wrapper is to see it, whose UID and GID are `wrapper_id`.

    Raises:
        MissingError: it is not there.
        McpwrapError: it is nothing that this wrapper may have, or its file system cannot do it.
    """
    fd = _open(folder)
    try:
        owner = _owner(folder, fd, workspaces)
        _expect_reachable(folder)
        return IdmappedMount(
            _mapped(folder, fd, owner, wrapper_id), stat.S_ISDIR(os.fstat(fd).st_mode)
        )
    finally:
        os.close(fd)


def _open(folder: Folder) -> int:
    try:
        return mount_api.open_path(folder.path)
    except OSError as error:
        problem, fix = _WHY.get(
            error.errno or 0, (f"{error.strerror}", "see that root can open it")
        )
        kind = MissingError if error.errno == errno.ENOENT else McpwrapError
        raise kind(f"{folder.path} {problem}", where="workspace", fix=fix) from error


def _owner(folder: Folder, fd: int, workspaces: Workspaces) -> pwd.struct_passwd:
    """Return the agent it belongs to."""
    info = os.fstat(fd)
    if not stat.S_ISDIR(info.st_mode) and not stat.S_ISREG(info.st_mode):
        raise _refusal(folder, "is neither a folder nor a plain file", "give a folder")
    try:
        owner = pwd.getpwuid(info.st_uid)
    except KeyError:
        raise _refusal(folder, f"belongs to UID {info.st_uid}, no account", "chown it") from None
    if not _is_agent(owner, workspaces):
        fix = "give a folder that one of its `agents` owns"
        raise _refusal(folder, f"belongs to {owner.pw_name}, who is no agent of it", fix)
    if _is_home(info, owner):
        fix = "give a folder in it, or several"
        raise _refusal(folder, f"is the home of {owner.pw_name}: that would be the account", fix)
    return owner


def _is_agent(owner: pwd.struct_passwd, workspaces: Workspaces) -> bool:
    """Root is none, and whoever has root's group is not either: it would be swapped too."""
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
    """Outside of /home the folders above are the machine's own, also for the wrapper."""
    if folder.path.startswith("/home/"):
        return
    for above in Path(folder.path).parents:
        if not above.stat().st_mode & stat.S_IXOTH:
            problem = f"is in {above}, which other accounts cannot enter"
            raise _refusal(folder, problem, f"`chmod o+x {above}`, or move it to /home")


def _mapped(folder: Folder, fd: int, owner: pwd.struct_passwd, wrapper_id: int) -> int:
    """Return a mount of it on which owner and wrapper stand for each other."""
    wanted = Attribute.NO_SETUID | Attribute.NO_DEVICES | Attribute.MAPPED
    if not folder.is_writable:
        wanted |= Attribute.READ_ONLY
    try:
        mount_fd = mount_api.copied(fd)
        namespace_fd = idmap.namespace(
            Swap(owner.pw_uid, wrapper_id), Swap(owner.pw_gid, wrapper_id)
        )
    except OSError as error:
        problem = f"cannot be given: {error.strerror}"
        raise _refusal(folder, problem, "see user.max_user_namespaces (sysctl)") from error
    try:
        mount_api.set_attributes(mount_fd, wanted, namespace_fd)
    except OSError as error:
        os.close(mount_fd)
        kind = mountinfo.filesystem_of(fd)
        problem = f"is on {kind}, which cannot show files under another owner ({error.strerror})"
        fix = "move it to ext4, xfs, btrfs or f2fs; tmpfs needs Linux 6.3"
        raise _refusal(folder, problem, fix) from error
    finally:
        os.close(namespace_fd)
    return mount_fd


def _refusal(folder: Folder, problem: str, fix: str) -> McpwrapError:
    return McpwrapError(f"{folder.path} {problem}", where="workspace", fix=fix)
