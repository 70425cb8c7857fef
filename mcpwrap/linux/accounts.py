"""Accounts and groups of this machine from NSS, and ids (UIDs, GIDs) in use without an account."""

import grp
import os
import pwd
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.core.names import FIRST_UID, LAST_UID, OUR_PREFIXES, next_uid, preferred_uid
from mcpwrap.linux.mount import mountinfo

_EVERY_ID = range(FIRST_UID, LAST_UID + 1)
_IDS_OF_THREAD = re.compile(r"^(?:Uid|Gid|Groups):(.*)$", re.MULTILINE)
_MAKER_OF_IPC = ("cuid", "cgid")
_SUBORDINATE = ("/etc/subuid", "/etc/subgid")
# Folders at the top without files of accounts, or whose entries are not files.
_NOT_LOOKED_INTO = frozenset({"boot", "dev", "lost+found", "media", "proc", "sys", "usr"})
# As in /media, an account mounts its own disks there, with files of any owner.
_MOUNTED_BY_ACCOUNTS = "/run/media"
_LOOKED_INTO_TOO = ("/dev/mqueue", "/dev/shm", "/usr/local")  # noqa: S108 - nothing is made there
# Local file systems. A mount of another kind may hang, or show the same files once more.
_LOCAL = frozenset(
    {
        "bcachefs",
        "btrfs",
        "ext2",
        "ext3",
        "ext4",
        "f2fs",
        "jfs",
        "mqueue",
        "ramfs",
        "tmpfs",
        "xfs",
        "zfs",
    }
)
MAX_LEVELS = 5  # below a folder at the top
MAX_NAMES = 100_000  # in such a folder, the upper levels first: some seconds


def ours() -> dict[str, int]:
    """Return the UID of every account that is named as that of a server or a run slot."""
    return {
        entry.pw_name: entry.pw_uid
        for entry in pwd.getpwall()
        if entry.pw_name.startswith(OUR_PREFIXES)
    }


def taken_by_others(ids: Iterable[int]) -> frozenset[int]:
    """Return those of these ids that belong to accounts or groups other than those of servers.

    An id that the machine's lists give to a server's account is not looked up by number as well.
    """
    ours_by_number = _listed_as_ours()
    return frozenset(n for n in ids if n not in ours_by_number and _is_taken(n))


def taken_near(names: Iterable[str], avoided: Collection[int]) -> frozenset[int]:
    """Return the ids of other accounts that new UIDs for `names` would collide with.

    `avoided` are never given, and the search goes on past them. Each id is looked up by number,
    because directories with many accounts cannot be listed; and only once, because this goes from
    name to name as `registry.allocate` will.
    """
    taken: set[int] = set()
    given: set[int] = set()
    for name in sorted(names):
        uid = preferred_uid(name)
        for _ in _EVERY_ID:
            if uid not in avoided and uid not in given and uid not in taken:
                if not _is_taken(uid):
                    given.add(uid)
                    break
                taken.add(uid)
            uid = next_uid(uid)
    return frozenset(taken)


@dataclass(frozen=True, slots=True)
class OwnedIds:
    """Ids of mcpwrap's range that own something on this machine."""

    ids: frozenset[int] = frozenset()
    unfinished: tuple[str, ...] = ()  # folders with more than MAX_NAMES names


def running_ids() -> frozenset[int]:
    """Return the ids of mcpwrap's range that a thread has, with or without an account.

    Threads of containers count too, with their ids on this machine.
    """
    found: set[int] = set()
    for thread in _threads():
        with suppress(OSError):  # it has ended
            status = (thread / "status").read_text(encoding="utf-8", errors="replace")
            found |= ids_of_thread(status)
    return frozenset(found.intersection(_EVERY_ID))


def _threads() -> Iterator[Path]:
    for threads in Path("/proc").glob("[0-9]*/task"):
        with suppress(OSError):  # the process has ended since it was listed
            yield from threads.iterdir()


def owned_ids(top: str = "/") -> OwnedIds:
    """Return the ids of mcpwrap's range that own files, created System V IPC objects, or are lent.

    Lent ids are those that a line of subuid(5) gives to containers. Files are searched for at most
    MAX_LEVELS below a folder of `top`, and not on network file systems. To be called as root.
    """
    found: set[int] = set()
    for path in map(Path, _SUBORDINATE):
        with suppress(FileNotFoundError):
            found |= lent_ids(path.read_text(encoding="utf-8", errors="replace"))
    for table in Path("/proc/sysvipc").glob("*"):
        found |= ids_of_ipc(table.read_text(encoding="ascii"))
    mounts = mountinfo.at_or_below([""]).values()  # all of them
    skipped = {mount.path for mount in mounts if mount.filesystem not in _LOCAL}
    skipped.add(_MOUNTED_BY_ACCOUNTS)
    folders = [folder for folder in _folders(top) if folder not in skipped]
    unfinished = tuple(folder for folder in folders if not _look(folder, skipped, found))
    return OwnedIds(frozenset(found.intersection(_EVERY_ID)), unfinished)


def ids_of_thread(status: str) -> set[int]:
    """Return real, effective, saved and file system ids, and groups. Source: proc_pid_status(5)."""
    return {int(number) for line in _IDS_OF_THREAD.findall(status) for number in line.split()}


def ids_of_ipc(table: str) -> set[int]:
    """Return the creators of all queues, semaphores and shared memory. Source: proc_sysvipc(5).

    Owners do not count: a creator can give the object to any UID (msgctl(2), IPC_SET), so also to
    each UID of mcpwrap's range.
    """
    head, *lines = table.splitlines()
    columns = [head.split().index(name) for name in _MAKER_OF_IPC]
    return {int(line.split()[column]) for line in lines for column in columns}


def lent_ids(text: str) -> set[int]:
    """Return the ids of mcpwrap's range in the lines of subuid(5)."""
    found: set[int] = set()
    for line in text.splitlines():
        _, _, numbers = line.partition(":")
        first, _, count = numbers.partition(":")
        if first.isdecimal() and count.isdecimal():
            start, end = int(first), int(first) + int(count)
            found.update(range(max(start, FIRST_UID), min(end, LAST_UID + 1)))
    return found


def _folders(top: str) -> Iterator[str]:
    with os.scandir(top) as entries:
        yield from sorted(
            entry.path
            for entry in entries
            if entry.name not in _NOT_LOOKED_INTO and entry.is_dir(follow_symlinks=False)
        )
    yield from filter(os.path.isdir, _LOOKED_INTO_TOO)


def _look(top: str, skipped: Collection[str], found: set[int]) -> bool:
    """Add the owners of a folder and its content, level by level; return whether that was all."""
    owner = os.lstat(top)
    found |= {owner.st_uid, owner.st_gid}
    names, level = 0, [top]
    for _ in range(MAX_LEVELS):
        below: list[str] = []
        for entry in _entries(level, skipped):
            names += 1
            if names > MAX_NAMES:
                return False
            with suppress(OSError):  # it was removed
                owner = entry.stat(follow_symlinks=False)
                found |= {owner.st_uid, owner.st_gid}
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
        level = below
    return True


def _entries(folders: Iterable[str], skipped: Collection[str]) -> Iterator[os.DirEntry[str]]:
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:  # it was removed, or was a mount
            yield from (entry for entry in entries if entry.path not in skipped)


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


def groups_from_next_login(uid: int) -> frozenset[int]:
    """Return the groups of an account by the group database; empty if they cannot be read.

    A process has the groups of the time of its login. Source: getgrouplist(3).
    """
    try:
        entry = pwd.getpwuid(uid)
        return frozenset(os.getgrouplist(entry.pw_name, entry.pw_gid))
    except (KeyError, OSError):
        return frozenset()


def _listed_as_ours() -> frozenset[int]:
    """Return the ids whose first account and first group have a server's name."""
    account_by_uid: dict[int, str] = {}
    for person in pwd.getpwall():
        account_by_uid.setdefault(person.pw_uid, person.pw_name)
    group_by_gid: dict[int, str] = {}
    for group in grp.getgrall():
        group_by_gid.setdefault(group.gr_gid, group.gr_name)
    return frozenset(
        number
        for number, name in account_by_uid.items()
        if name.startswith(OUR_PREFIXES) and group_by_gid.get(number, "").startswith(OUR_PREFIXES)
    )


def _is_taken(number: int) -> bool:
    owner = name_of(number)
    try:
        group = grp.getgrgid(number).gr_name
    except KeyError:
        group = None
    return any(name and not name.startswith(OUR_PREFIXES) for name in (owner, group))


def home_of(account: str) -> str:
    """Return the home folder of an existing account."""
    return pwd.getpwnam(account).pw_dir


def uids_in(group: str) -> frozenset[int]:
    """Return the UIDs of all members of a group, listed or by primary group. Source: initgroups(3).

    In a directory that cannot be listed, members by primary group are not found.
    """
    try:
        entry = grp.getgrnam(group)
    except KeyError:
        return frozenset()
    listed = (uid_of(name) for name in entry.gr_mem)
    own = {person.pw_uid for person in pwd.getpwall() if person.pw_gid == entry.gr_gid}
    return frozenset(own | {uid for uid in listed if uid is not None})


def members_of(group: str) -> list[str]:
    """Return the listed members of a group; accounts with it as primary group are not included."""
    try:
        return grp.getgrnam(group).gr_mem
    except KeyError:
        return []
