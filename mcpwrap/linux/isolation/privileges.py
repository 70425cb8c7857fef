"""Permanent drop of root privileges, before data is read that root did not write."""

import os
import pwd
from dataclasses import dataclass

NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class InvokingUser:
    """Account under which a process continues."""

    account: str
    home: str
    is_somebody: bool  # an account of a person, not `nobody`


def invoking_user(uid: str, gid: str) -> tuple[InvokingUser, int, int]:
    """Return the account that called sudo, by SUDO_UID and SUDO_GID, with both ids.

    Without a valid one it is `nobody`.
    """
    if uid.isdecimal() and gid.isdecimal() and int(uid):
        try:
            entry = pwd.getpwuid(int(uid))
            return InvokingUser(entry.pw_name, entry.pw_dir, is_somebody=True), int(uid), int(gid)
        except KeyError:
            pass
    entry = pwd.getpwnam(NOBODY)
    return InvokingUser(entry.pw_name, "/", is_somebody=False), entry.pw_uid, entry.pw_gid


def give_up_root(uid: str, gid: str) -> InvokingUser | None:
    """Switch from root to the account that called sudo; return it, or None if not root.

    Raises:
        OSError: the kernel refused.
    """
    if os.geteuid() != 0:
        return None
    who, uid_, gid_ = invoking_user(uid, gid)
    os.setgroups(os.getgrouplist(who.account, gid_) if who.is_somebody else [gid_])
    os.setresgid(gid_, gid_, gid_)
    os.setresuid(uid_, uid_, uid_)
    if os.getresuid() != (uid_,) * 3:  # even if the call reported success
        raise PermissionError("the process still has another UID after setresuid(2)")
    return who
