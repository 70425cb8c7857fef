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
    """Return the mounts in the order in which they were made."""
    return map(_mount, filter(None, text.split("\n")))  # the kernel escapes no other end of a line


def at_or_below(paths: Collection[str], fd: int | None = None) -> dict[str, Mount]:
    """Return the mounts at and below these paths, by path; the topmost if there are several.

    `fd` is the mount table that another process has opened, of its own mount namespace.
    """
    lines = (_text() if fd is None else _text_of(fd)).split("\n")
    below = tuple(f"{path}/" for path in paths)
    concerned = (line for line in lines if line and f"{_path_in(line)}/".startswith(below))
    return {mount.path: mount for mount in map(_mount, concerned)}


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


def _mount(line: str) -> Mount:
    fields = line.split(" ")
    filesystem = fields[fields.index("-") + 1]
    return Mount(int(fields[0]), _plain(fields[4]), _plain(fields[3]), filesystem)


def _path_in(line: str) -> str:
    return _plain(line.split(" ", 5)[4])


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
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), field) if "\\" in field else field
