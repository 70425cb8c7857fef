"""Seccomp filter of every server, in addition to its unit's: calls that only the supervisor needs.

The unit's own filter applies to the supervisor too, which notifies systemd over AF_UNIX. So a
server's process enters this second one before execve(2): in a wrapper by
session/launch/sandbox.py, in `mcpwrap run` by as_agent/run/sandbox/layers.py.
"""

import errno
import socket

from mcpwrap.linux.seccomp import bpf
from mcpwrap.linux.seccomp.bpf import AND, JUMP_IF_EQUAL, LOAD, Line

MACHINES = ("x86_64", "aarch64")
# By name: the number on each machine.
JUDGED = {
    "socket": (41, 198), "socketpair": (53, 199), "prlimit64": (302, 261),
    "sched_setaffinity": (203, 122), "ioctl": (16, 29), "fcntl": (72, 25),
}  # fmt: skip
# By FS_IOC_FSSETXATTR and FS_IOC_SETFLAGS an owner removes a file from its project, and so from
# its quota. linux/fs.h
_LEAVES_PROJECT = (0x401C5820, 0x40086602)
# By F_SETLEASE and F_SETDELEG an account that may only read a file delays its writers: by 45 s,
# each time (/proc/sys/fs/lease-break-time). linux/fcntl.h; the second exists since Linux 6.19.
_HOLDS_UP_WRITERS = (1024, 1040)
_IPPROTO_MPTCP = 262
_KIND_MASK = 0xF  # SOCK_CLOEXEC and SOCK_NONBLOCK are above it
# Landlock and nft filter TCP; vsock bypasses both, and a unix socket reaches every local service.
_FAMILIES = (socket.AF_UNIX, socket.AF_VSOCK)
# A thread that passes its own id, as pthread_setaffinity_np(3) does, is refused too: a filter sees
# the number, and cannot compare it with the caller's.
_ON_ITSELF: list[Line] = [
    (LOAD, 0, 0, bpf.ARGUMENT_0),
    (JUMP_IF_EQUAL, 0, 1, 0),
    bpf.ALLOWED,
    bpf.refused(errno.EPERM),
]


def refuse_sockets() -> None:
    """Make socket(2) fail with EAFNOSUPPORT for AF_UNIX, AF_VSOCK and MPTCP, for good.

    socketpair(2) is allowed for streams: Node and Python use them as pipes to their children. A
    datagram socket could send to any address. prlimit(2) and sched_setaffinity(2) are refused
    unless their process is 0, the caller: supervisor and other sessions have the same UID. Leaving
    a project quota, and leases on files, are refused too.

    Raises:
        OSError: the kernel refused, or this machine's system call numbers are not known.
    """
    machine = MACHINES.index(bpf.this_machine(MACHINES))
    lines: list[Line] = [(LOAD, 0, 0, bpf.NUMBER)]
    for name, block in (
        ("socket", _made()),
        ("socketpair", _paired()),
        ("prlimit64", _ON_ITSELF),
        ("sched_setaffinity", _ON_ITSELF),
        ("ioctl", _all_but(_LEAVES_PROJECT)),
        ("fcntl", _all_but(_HOLDS_UP_WRITERS)),
    ):
        lines += bpf.block(JUDGED[name][machine], block)
    bpf.enter([*lines, bpf.ALLOWED])


def _made() -> list[Line]:
    return [
        (LOAD, 0, 0, bpf.ARGUMENT_0),
        *((JUMP_IF_EQUAL, len(_FAMILIES) - i + 2, 0, f) for i, f in enumerate(_FAMILIES)),
        (LOAD, 0, 0, bpf.ARGUMENT_2),
        (JUMP_IF_EQUAL, 1, 0, _IPPROTO_MPTCP),
        bpf.ALLOWED,
        bpf.refused(errno.EAFNOSUPPORT),
    ]


def _paired() -> list[Line]:
    return [
        (LOAD, 0, 0, bpf.ARGUMENT_1),
        (AND, 0, 0, _KIND_MASK),
        (JUMP_IF_EQUAL, 1, 0, socket.SOCK_STREAM),
        (JUMP_IF_EQUAL, 0, 1, socket.SOCK_SEQPACKET),
        bpf.ALLOWED,
        bpf.refused(errno.EAFNOSUPPORT),
    ]


def _all_but(commands: tuple[int, ...]) -> list[Line]:
    return [
        (LOAD, 0, 0, bpf.ARGUMENT_1),
        *((JUMP_IF_EQUAL, len(commands) - i, 0, n) for i, n in enumerate(commands)),
        bpf.ALLOWED,
        bpf.refused(errno.EPERM),
    ]
