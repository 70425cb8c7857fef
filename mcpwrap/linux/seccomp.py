"""The second system call filter: what the supervisor needs and a server must not have.

The unit's own filter holds for the supervisor too, which speaks to systemd over AF_UNIX.
"""

import errno
import socket

from mcpwrap.linux import bpf
from mcpwrap.linux.bpf import AND, JUMP_IF_EQUAL, LOAD, Line

# Numbers of socket(2), socketpair(2), prlimit64(2), ioctl(2) and fcntl(2).
_NUMBERS_BY_MACHINE = {"x86_64": (41, 53, 302, 16, 72), "aarch64": (198, 199, 261, 29, 25)}
# By FS_IOC_FSSETXATTR and FS_IOC_SETFLAGS an owner takes a file out of its project, and with that
# out of its quota. linux/fs.h
_LEAVES_PROJECT = (0x401C5820, 0x40086602)
# By F_SETLEASE and F_SETDELEG who may only read a file makes its writers wait: for 45 s, each time
# (/proc/sys/fs/lease-break-time). linux/fcntl.h; the second is of Linux 6.19.
_HOLDS_UP_WRITERS = (1024, 1040)
_IPPROTO_MPTCP = 262
_KIND_MASK = 0xF  # SOCK_CLOEXEC and SOCK_NONBLOCK are above it
# Landlock and nft see TCP; vsock passes both, and a unix socket leads to every local service.
_FAMILIES = (socket.AF_UNIX, socket.AF_VSOCK)


def refuse_sockets() -> None:
    """Make socket(2) fail with EAFNOSUPPORT for AF_UNIX, AF_VSOCK and MPTCP, for good.

    socketpair(2) stays for streams: Node and Python make pipes to their children of it. One of
    datagrams could send to any address. prlimit(2) on another process is refused as well: the
    supervisor has the same UID; and so are leaving a project quota, and leases on files.

    Raises:
        OSError: the kernel refused, or this machine's system call numbers are not known.
    """
    machine = bpf.this_machine(tuple(_NUMBERS_BY_MACHINE))
    bpf.enter(_program(*_NUMBERS_BY_MACHINE[machine]))


def _program(
    socket_number: int,
    pair_number: int,
    prlimit_number: int,
    ioctl_number: int,
    fcntl_number: int,
) -> list[Line]:
    refused = bpf.refused(errno.EAFNOSUPPORT)
    make = [
        (LOAD, 0, 0, bpf.ARGUMENT_0),
        *((JUMP_IF_EQUAL, len(_FAMILIES) - i + 2, 0, f) for i, f in enumerate(_FAMILIES)),
        (LOAD, 0, 0, bpf.ARGUMENT_2),
        (JUMP_IF_EQUAL, 1, 0, _IPPROTO_MPTCP),
        bpf.ALLOWED,
        refused,
    ]
    pair = [
        (LOAD, 0, 0, bpf.ARGUMENT_1),
        (AND, 0, 0, _KIND_MASK),
        (JUMP_IF_EQUAL, 1, 0, socket.SOCK_STREAM),
        (JUMP_IF_EQUAL, 0, 1, socket.SOCK_SEQPACKET),
        bpf.ALLOWED,
        refused,
    ]
    limit = [
        (LOAD, 0, 0, bpf.ARGUMENT_0),
        (JUMP_IF_EQUAL, 0, 1, 0),
        bpf.ALLOWED,
        bpf.refused(errno.EPERM),
    ]
    return [
        (LOAD, 0, 0, bpf.NUMBER),
        *bpf.block(socket_number, make),
        *bpf.block(pair_number, pair),
        *bpf.block(prlimit_number, limit),
        *bpf.block(ioctl_number, _all_but(_LEAVES_PROJECT)),
        *bpf.block(fcntl_number, _all_but(_HOLDS_UP_WRITERS)),
        bpf.ALLOWED,
    ]


def _all_but(commands: tuple[int, ...]) -> list[Line]:
    return [
        (LOAD, 0, 0, bpf.ARGUMENT_1),
        *((JUMP_IF_EQUAL, len(commands) - i, 0, n) for i, n in enumerate(commands)),
        bpf.ALLOWED,
        bpf.refused(errno.EPERM),
    ]
