"""Accounts and groups of this machine, as NSS has them."""

import grp
import pwd
from collections.abc import Collection, Iterable

from mcpwrap.core.names import ACCOUNT_PREFIX, next_uid, preferred_uid


def ours() -> dict[str, int]:
    """Return the UID of every account whose name says it belongs to a server."""
    return {
        entry.pw_name: entry.pw_uid
        for entry in pwd.getpwall()
        if entry.pw_name.startswith(ACCOUNT_PREFIX)
    }


def taken_ids(names: Iterable[str], used: Collection[int]) -> frozenset[int]:
    """Return the ids of others that are in the way of giving UIDs to `names`.

    `used` are our own, of servers that are and that were: somebody else may have got one since, and
    the search goes on past them. Each id is asked for by number, because directories with many
    accounts cannot be listed.
    """
    wanted = sorted(names)
    taken = {uid for uid in used if _is_taken(uid)}
    for name in wanted:
        uid, free = preferred_uid(name), 0
        while free < len(wanted):
            if _is_taken(uid):
                taken.add(uid)
            elif uid not in used:
                free += 1
            uid = next_uid(uid)
    return frozenset(taken)


def uid_of(account: str) -> int | None:
    """Return the UID of an account, or None if there is no such account."""
    try:
        return pwd.getpwnam(account).pw_uid
    except KeyError:
        return None


def gid_of(group: str) -> int | None:
    """Return the GID of a group, or None if there is no such group."""
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        return None


def name_of(uid: int) -> str | None:
    """Return the account that has this UID, or None."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


def _is_taken(number: int) -> bool:
    owner = name_of(number)
    try:
        group = grp.getgrgid(number).gr_name
    except KeyError:
        group = None
    return any(name and not name.startswith(ACCOUNT_PREFIX) for name in (owner, group))


def home_of(account: str) -> str:
    """Return the home folder of an account that there is."""
    return pwd.getpwnam(account).pw_dir


def uids_in(group: str) -> frozenset[int]:
    """Return the UIDs of all in a group, by listing or as their own. Source: initgroups(3).

    Of a directory that cannot be listed, those whose own group it is are not found.
    """
    try:
        entry = grp.getgrnam(group)
    except KeyError:
        return frozenset()
    listed = (uid_of(name) for name in entry.gr_mem)
    own = {person.pw_uid for person in pwd.getpwall() if person.pw_gid == entry.gr_gid}
    return frozenset(own | {uid for uid in listed if uid is not None})


def members_of(group: str) -> list[str]:
    """Return the accounts that are listed as members of a group; those of its own GID are not."""
    try:
        return grp.getgrnam(group).gr_mem
    except KeyError:
        return []
