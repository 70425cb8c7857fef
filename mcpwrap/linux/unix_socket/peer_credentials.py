"""Peer credentials of a unix socket, as the kernel recorded them at connect(2)."""

import errno
import os
import re
import select
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

_SO_PEERGROUPS = 59  # asm-generic/socket.h; Python has no name for it
_UMASK = re.compile(r"^Umask:\t([0-7]{3,4})$", re.MULTILINE)  # no name in that file has a newline
_MAX_GROUP_BYTES = 1024  # the most that Python's getsockopt takes: 256 groups
# systemd's trees. A container whose systemd knows cgroup v2 alone has no cgroups in the tree of v1
# that a host may have.
_CGROUPS = [
    re.compile(tree, re.MULTILINE) for tree in (r"^[0-9]+:name=systemd:(.*)$", r"^0::(.*)$")
]


@dataclass(frozen=True, slots=True)
class Peer:
    """Process and account at the other end of a connection. `gids` has the primary group too."""

    pid: int
    uid: int
    gids: frozenset[int]


def process_of(connection: socket.socket) -> int:
    """Return a descriptor that is readable once the process that connected has ended.

    The end of the connection does not show it: a socket can be sent in a message to itself, and
    stays open there. Source: pidfd_open(2).

    Raises:
        ProcessLookupError: that process has ended.
    """
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, _, _ = struct.unpack("iII", credentials)
    return os.pidfd_open(pid)


def credentials_of(connection: socket.socket) -> Peer:
    """Return the peer of a connection. Source: unix(7), SO_PEERCRED and SO_PEERGROUPS.

    It stays the process that connected, even if another process holds the socket later. For an
    account in over 256 groups only the primary one counts: too few groups admit no account.
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


def service_of(pid: int) -> tuple[str, str]:
    """Return the service of a process and its cgroup within that service; two "" without one.

    The service is the first component that ends in `.service` below one that ends in `.slice`:
    PID 1 has made all components up to it, and a process cannot move to another service. Further
    down the names are of an account that the service runs as (systemd.resource-control(5),
    Delegate=). Where systemd has a tree of v1 beside that of v2, only the latter has cgroups within
    a service. Source: proc_pid_cgroup(5).
    """
    service, within = "", ""
    for path in _cgroups_of(pid):
        found, inner = _service_in(path)
        if service and found and service != found:
            return "", ""
        if found:
            service, within = found, inner
    return service, within


def _service_in(path: str) -> tuple[str, str]:
    above = ""
    parts = path.split("/")
    for at, part in enumerate(parts):
        if part.endswith(".service") and above.endswith(".slice"):
            return part, "/".join(parts[at + 1 :])
        above = part
    return "", ""


def _cgroups_of(pid: int) -> list[str]:
    """Return the cgroups of a process in the trees of systemd."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [found[1] for tree in _CGROUPS if (found := tree.search(text))]


def umask_of(pid: int, pidfd: int) -> int | None:
    """Return the umask of the process of `pidfd`; None if it cannot be determined.

    Source: proc_pid_status(5), since Linux 4.7.
    """
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    if poll.poll(0):  # it has ended, and the PID may belong to another process
        return None
    found = _UMASK.search(text)
    return int(found[1], 8) if found else None
