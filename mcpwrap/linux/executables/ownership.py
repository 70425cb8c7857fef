"""Ownership and modes along a path: places where an account other than root can change it.

Source: path_resolution(7), acl(5). OpenSSH checks its files the same way, in safe_path().
"""

import os
import pwd
import stat
from dataclasses import dataclass, field

from mcpwrap.linux.mount import mountinfo

_MAX_LINKS = 40  # as in the kernel
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Folders of root's, in which the session of an account mounts, or the kernel shows, what it likes.
_OF_SESSIONS = ("/media", "/proc", "/run/media", "/run/user")


@dataclass(frozen=True, slots=True)
class OwnershipFlaw:
    """Place on a path where another account can change the target, or that was not checked."""

    path: str
    problem: str
    is_hidden: bool = False  # from this account; root may see that nothing is wrong


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
    """Walker of paths that checks owners and modes; what was found to be root's is cached."""

    _uid_by_device: dict[int, int] = field(default_factory=mountinfo.devices_of_accounts)
    _kind_by_path: dict[str, int] = field(default_factory=dict)  # of what is root's: its mode

    def walk(self, path: str) -> ResolvedPath | MissingPath | OwnershipFlaw:
        """Return where an absolute path leads, or what is wrong with it first."""
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
                    return OwnershipFlaw(here, "leads in a circle")
                target = os.readlink(here)
                left += reversed(target.split("/"))
                done = "/" if target.startswith("/") else done
                continue
            done, mode = here, found
        return ResolvedPath(done, is_folder=stat.S_ISDIR(mode), is_file=stat.S_ISREG(mode))

    def _look(self, path: str) -> int | MissingPath | OwnershipFlaw:
        """Return the mode of what is at a path; a link itself is changed in its folder alone."""
        if path in self._kind_by_path:
            return self._kind_by_path[path]
        if path in _OF_SESSIONS:
            return OwnershipFlaw(path, "is where other accounts have things mounted, or shown")
        try:
            info = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return MissingPath(path)
        except OSError as error:
            is_hidden = isinstance(error, PermissionError) and os.geteuid() != 0
            return OwnershipFlaw(path, f"cannot be looked at: {error.strerror}", is_hidden)
        if problem := self.problem(info):
            return OwnershipFlaw(path, problem)
        self._kind_by_path[path] = info.st_mode
        return info.st_mode

    def problem(self, info: os.stat_result) -> str:
        """Return how another account can change a file or folder; "" if none can.

        An entry of an access control list grants no more than the group's bits of the mode, which
        are its mask: acl(5).
        """
        if (uid := self._uid_by_device.get(info.st_dev, 0)) != 0:
            return f"is on a file system that {_account(uid)} has mounted"
        if stat.S_ISLNK(info.st_mode):
            return ""
        if info.st_uid != 0:
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
