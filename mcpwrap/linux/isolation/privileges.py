"""Permanent drop of root privileges, before anything is read that root did not write."""

import os
import pwd
from dataclasses import dataclass

NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class InvokingUser:
    """Account under which a process goes on."""

    account: str
    home: str
    is_somebody: bool  # and not the account of those who have none


def invoking_user(uid: str, gid: str) -> tuple[InvokingUser, int, int]:
    """Return who typed sudo, by its SUDO_UID and SUDO_GID; without one, nobody. And both ids."""
    if uid.isdecimal() and gid.isdecimal() and int(uid):
        try:
            entry = pwd.getpwuid(int(uid))
            return InvokingUser(entry.pw_name, entry.pw_dir, is_somebody=True), int(uid), int(gid)
        except KeyError:
            pass
    entry = pwd.getpwnam(NOBODY)
    return InvokingUser(entry.pw_name, "/", is_somebody=False), entry.pw_uid, entry.pw_gid


def give_up_root(uid: str, gid: str) -> InvokingUser | None:
    """Become who typed sudo, if this is root; return who that is, None if it was not root.

    Raises:
        OSError: the kernel refused it.
    """
    if os.geteuid() != 0:
        return None
    who, uid_, gid_ = invoking_user(uid, gid)
    os.setgroups(os.getgrouplist(who.account, gid_) if who.is_somebody else [gid_])
    os.setresgid(gid_, gid_, gid_)
    os.setresuid(uid_, uid_, uid_)
    if os.getresuid() != (uid_,) * 3:  # what follows must not be root, whatever was said
        raise PermissionError("root was not given up")
    return who
