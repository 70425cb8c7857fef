"""Listening TCP sockets of this machine (IPv4), with UID and inode. Source: proc_pid_net(5)."""

import ipaddress
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TABLE = Path("/proc/self/net/tcp")  # it exists with ProcSubset=pid too
_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class _Socket:
    address: str
    port: int
    uid: int
    inode: int


def inodes(port: int) -> dict[str, int]:
    """Return the inode of each socket that listens at this port, by IPv4 address."""
    return {found.address: found.inode for found in _listening() if found.port == port}


def addresses_of(uid: int) -> set[tuple[str, int]]:
    """Return the IPv4 addresses and ports at which processes of this account listen."""
    return {(found.address, found.port) for found in _listening() if found.uid == uid}


def _listening() -> Iterator[_Socket]:
    for line in _TABLE.read_text(encoding="ascii").splitlines()[1:]:
        _, local, _, state, _, _, _, uid, _, inode, *_ = line.split()
        if state == _LISTEN:
            address, _, port = local.partition(":")
            # The address is a number in the machine's order: `0100007F` is 127.0.0.1.
            bytes_of_it = int(address, 16).to_bytes(4, sys.byteorder)
            yield _Socket(
                str(ipaddress.IPv4Address(bytes_of_it)), int(port, 16), int(uid), int(inode)
            )
