"""Who is at the other end of a unix socket, as the kernel noted when it connected."""

import errno
import os
import socket
import struct
from dataclasses import dataclass

_SO_PEERGROUPS = 59  # asm-generic/socket.h; Python has no name for it
_MAX_GROUP_BYTES = 1024  # the most that Python's getsockopt takes: 256 groups


@dataclass(frozen=True, slots=True)
class Peer:
    """The account behind a connection. `gids` holds the primary group too."""

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


def of(connection: socket.socket) -> Peer:
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
