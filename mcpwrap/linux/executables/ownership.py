"""Ownership and modes along a path: points where an account other than root can change it.

Source: path_resolution(7), acl(5). OpenSSH checks its files the same way, in safe_path().
"""

import grp
import os
import pwd
import stat
from contextlib import suppress
from dataclasses import dataclass, field

from mcpwrap.linux import accounts
from mcpwrap.linux.mount import mountinfo

_MAX_LINKS = 40  # as in the kernel
_ACCESS_LIST = "system.posix_acl_access"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Folders of root in which an account's session mounts its own disks, or the kernel shows its files.
_OF_SESSIONS = ("/media", "/proc", "/run/media", "/run/user")


@dataclass(frozen=True, slots=True)
class OwnershipFlaw:
    """Point on a path where another account can change the target, or that was not checked."""

    path: str
    problem: str
    is_hidden: bool = False  # from this account; for root the path may be without a flaw


@dataclass(frozen=True, slots=True)
class MissingPath:
    """First name on a path that does not exist."""

    path: str


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """Path without symbolic links, which root alone can change."""

    path: str
    is_folder: bool
    is_file: bool


@dataclass(slots=True)
class Ownership:
    """Walker of paths that checks owners and modes; names without a flaw are cached.

    With `own_uid`, what root and that account alone can change has no flaw.
    """

    _uid_by_device: dict[int, int] = field(default_factory=mountinfo.devices_of_accounts)
    _kind_by_path: dict[str, int] = field(default_factory=dict)  # mode of each name without a flaw
    own_uid: int | None = field(default=None, kw_only=True)

    def walk(self, path: str) -> ResolvedPath | MissingPath | OwnershipFlaw:
        """Resolve an absolute path; return its target, or the first missing name or flaw on it."""
        done, left, links = "", path.split("/")[::-1], 0
        mode = stat.S_IFDIR
        while left:
            name = left.pop()
            if name in {".", ""} and done:
                continue
            if name == "..":
                done = os.path.dirname(done) or "/"
                continue
            here = os.path.join(done, name) or "/"
            found = self._look(here)
            if not isinstance(found, int):
                return found
            if stat.S_ISLNK(found):
                links += 1
                if links > _MAX_LINKS:
                    return OwnershipFlaw(here, "is in a loop of symbolic links")
                target = os.readlink(here)
                left += reversed(target.split("/"))
                done = "/" if target.startswith("/") else done
                continue
            done, mode = here, found
        return ResolvedPath(done, is_folder=stat.S_ISDIR(mode), is_file=stat.S_ISREG(mode))

    def _look(self, path: str) -> int | MissingPath | OwnershipFlaw:
        """Return the mode of a name. A link can be changed only by replacing it in its folder."""
        if path in self._kind_by_path:
            return self._kind_by_path[path]
        if path in _OF_SESSIONS:
            return OwnershipFlaw(path, "has mounts or files that other accounts control")
        try:
            info = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return MissingPath(path)
        except OSError as error:
            is_hidden = isinstance(error, PermissionError) and os.geteuid() != 0
            return OwnershipFlaw(path, f"cannot be checked: {error.strerror}", is_hidden)
        if (problem := self.problem(info)) and not self._is_private(path, info):
            return OwnershipFlaw(path, problem)
        self._kind_by_path[path] = info.st_mode
        return info.st_mode

    def _is_private(self, path: str, info: os.stat_result) -> bool:
        """Return whether root and `own_uid` alone can write to what its mode opens to others.

        In a folder with the sticky bit each account changes only its own names: inode(7).
        """
        mode = info.st_mode
        owners = {info.st_uid, self._uid_by_device.get(info.st_dev, 0)}
        if self.own_uid is None or not owners <= {0, self.own_uid}:
            return False
        if stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
            return True
        if mode & stat.S_IWOTH or _ACCESS_LIST in os.listxattr(path):
            return False
        with suppress(KeyError):
            return accounts.uids_in(grp.getgrgid(info.st_gid).gr_name) <= {0, self.own_uid}
        return False

    def problem(self, info: os.stat_result) -> str:
        """Return why another account can change a file or folder; "" if none can.

        An entry of an access control list grants no more than the group bits of the mode, which
        are the list's mask: acl(5).
        """
        own = {0, self.own_uid}
        if (uid := self._uid_by_device.get(info.st_dev, 0)) not in own:
            return f"is on a file system that {_account(uid)} has mounted"
        if stat.S_ISLNK(info.st_mode):
            return ""
        if info.st_uid not in own:
            return f"belongs to {_account(info.st_uid)}"
        if info.st_mode & _OTHERS_WRITE:
            who = "every account" if info.st_mode & stat.S_IWOTH else "a group, or another account,"
            return f"has mode {stat.S_IMODE(info.st_mode):04o}: {who} can write to it"
        return ""


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"UID {uid}"
