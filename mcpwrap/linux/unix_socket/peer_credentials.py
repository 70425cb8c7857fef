"""Peer credentials of a unix socket, as the kernel noted them when it connected."""

import errno
import os
import re
import select
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

_SO_PEERGROUPS = 59  # asm-generic/socket.h; Python has no name for it
_UMASK = re.compile(r"^Umask:\t([0-7]{3,4})$", re.MULTILINE)  # a name in that file has no newline
_MAX_GROUP_BYTES = 1024  # the most that Python's getsockopt takes: 256 groups
# The tree of systemd: that of v1 where there is one, though there may be another of v2 beside it.
_CGROUPS = [
    re.compile(tree, re.MULTILINE) for tree in (r"^[0-9]+:name=systemd:(.*)$", r"^0::(.*)$")
]


@dataclass(frozen=True, slots=True)
class Peer:
    """Process and account behind a connection. `gids` holds the primary group too."""

    pid: int
    uid: int
    gids: frozenset[int]


def process_of(connection: socket.socket) -> int:
    """Return a descriptor that is readable once the process that connected has ended.

    The connection alone does not tell: it can be put into a message to itself, and live on there.
    Source: pidfd_open(2).

    Raises:
        ProcessLookupError: that process has ended.
    """
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, _, _ = struct.unpack("iII", credentials)
    return os.pidfd_open(pid)


def credentials_of(connection: socket.socket) -> Peer:
    """Return who connected. Source: unix(7), SO_PEERCRED and SO_PEERGROUPS.

    The identity stays the connector's, whoever holds the socket later. Of an account in over 256
    groups only the primary one counts: too few groups let nobody in.
    """
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, uid, gid = struct.unpack("iII", credentials)
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MAX_GROUP_BYTES)
    except OSError as error:
        if error.errno != errno.ERANGE:
            raise
        raw = b""
    groups = struct.unpack(f"{len(raw) // 4}I", raw)
    return Peer(pid, uid, frozenset({gid, *groups}))


def unit_of(pid: int) -> str:
    """Return the unit of systemd that a process is in; "" where that is not to be found out.

    No process of a unit gets into another: only root writes to the cgroups of the system's units.
    Of a process that made cgroups of its own it is the name of the innermost.
    Source: proc_pid_cgroup(5).
    """
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = next(filter(None, (tree.search(text) for tree in _CGROUPS)), None)
    return found[1].rpartition("/")[2] if found else ""


def umask_of(pid: int, pidfd: int) -> int | None:
    """Return the umask of the process that `pidfd` is; None where that is not to be found out.

    Source: proc_pid_status(5), since Linux 4.7.
    """
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    if poll.poll(0):  # it has ended, and its number may be another's by now
        return None
    found = _UMASK.search(text)
    return int(found[1], 8) if found else None
