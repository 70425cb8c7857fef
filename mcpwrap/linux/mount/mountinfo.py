"""Mount table, as the caller sees it. Source: proc_pid_mountinfo(5)."""

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

PATH = "/proc/self/mountinfo"  # poll(2) reports POLLPRI when it changes
_ESCAPED = re.compile(r"\\([0-7]{3})")
# Options of the file system itself. Source: mount.fuse3(8), user_id.
_OWNER = re.compile(r" (?P<major>\d+):(?P<minor>\d+) .* - fuse\S* .*\buser_id=(?P<uid>\d+)")


class Mount(NamedTuple):
    """One mount. `root` is the mounted folder of the file system; its path follows a rename."""

    number: int
    path: str
    root: str
    filesystem: str


def parsed(text: str) -> Iterator[Mount]:
    """Yield the mounts in the order in which they were made."""
    for line in filter(None, text.split("\n")):  # the kernel escapes no other end of a line
        fields = line.split(" ")
        filesystem = fields[fields.index("-") + 1]
        yield Mount(int(fields[0]), _plain(fields[4]), _plain(fields[3]), filesystem)


def at_or_below(paths: Collection[str], fd: int | None = None) -> dict[str, Mount]:
    """Return the mounts at and below these paths, by path; the topmost if there are several.

    `fd` is the mount table that another process has opened, of its own mount namespace.
    """
    return {
        mount.path: mount
        for mount in parsed(_text() if fd is None else _text_of(fd))
        if any(mount.path == path or mount.path.startswith(f"{path}/") for path in paths)
    }


def filesystem_of(fd: int) -> str:
    """Return the type of an open file's file system, as `mount` prints it."""
    fields = dict(
        line.split(":\t", 1) for line in Path(f"/proc/self/fdinfo/{fd}").read_text().splitlines()
    )
    number = int(fields["mnt_id"])
    kinds = [mount.filesystem for mount in parsed(_text()) if mount.number == number]
    return kinds[0] if kinds else "this file system"


def devices_of_accounts() -> dict[int, int]:
    """Return the UID of the account that runs each FUSE file system, by device number.

    The program of such a file system reports any owner for its files, also root.
    """
    found = (_OWNER.search(line) for line in _text().split("\n") if " - fuse" in line)
    return {
        os.makedev(int(mount["major"]), int(mount["minor"])): int(mount["uid"])
        for mount in found
        if mount
    }


def _text() -> str:
    return Path(PATH).read_bytes().decode(errors="surrogateescape")


def _text_of(fd: int) -> str:
    parts, size = [], 0
    while part := os.pread(fd, 65536, size):
        parts.append(part)
        size += len(part)
    return b"".join(parts).decode(errors="surrogateescape")


def _plain(field: str) -> str:
    """Return a path without its octal escapes, which stand for bytes below 0x80."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), field)
