"""File metadata and events without open(2): stat(2), inotify(7). Runs inside, as a server.

Source: inotify(7), struct inotify_event.
"""

import ctypes
import os
import select
import struct
from collections.abc import Iterator
from pathlib import Path

CREATE, DELETE, MODIFY, ATTRIB = 0x100, 0x200, 0x2, 0x4
HEAD = struct.Struct("iIII")
WAIT_S = 60

libc = ctypes.CDLL(None, use_errno=True)
inotify_fd = libc.inotify_init()


def sizes(paths: list[str]) -> dict[str, int]:
    """Return the size of each, or the error as a negative number."""
    return {path: _size(path) for path in paths}


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError as error:
        return -(error.errno or 0)


def watch(paths: list[str]) -> dict[str, int]:
    """Watch each for events; return the errors, 0 for success."""
    events = CREATE | DELETE | MODIFY | ATTRIB
    return {
        path: ctypes.get_errno()
        if libc.inotify_add_watch(inotify_fd, os.fsencode(path), events) < 0
        else 0
        for path in paths
    }


def names_until(last: str) -> list[str]:
    """Return the names in events so far and until one of `last`."""
    names: list[str] = []
    while last not in names:
        if not select.select([inotify_fd], [], [], WAIT_S)[0]:
            return [*names, "nothing more came"]
        names += _names(os.read(inotify_fd, 65536))
    return names


def _names(events: bytes) -> Iterator[str]:
    while events:
        length = HEAD.unpack_from(events)[3]
        yield os.fsdecode(events[HEAD.size : HEAD.size + length].rstrip(b"\0"))
        events = events[HEAD.size + length :]
