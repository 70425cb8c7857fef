"""The second system call filter: what the supervisor needs and a server must not have.

The unit's own filter holds for the supervisor too, which speaks to systemd over AF_UNIX.
Source: seccomp(2), linux/bpf_common.h; the values are the kernel's.
"""

import ctypes
import errno
import os
import platform
import socket
import struct

# Numbers of socket(2), socketpair(2) and prlimit64(2).
_NUMBERS_BY_MACHINE = {"x86_64": (41, 53, 302), "aarch64": (198, 199, 261)}
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LOAD, _AND, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NUMBER, _ARGUMENT_0, _ARGUMENT_1, _ARGUMENT_2 = 0, 16, 24, 32  # in struct seccomp_data; low halves
_IPPROTO_MPTCP = 262
_KIND_MASK = 0xF  # SOCK_CLOEXEC and SOCK_NONBLOCK are above it
# Landlock and nft see TCP; vsock passes both, and a unix socket leads to every local service.
_FAMILIES = (socket.AF_UNIX, socket.AF_VSOCK)


def refuse_sockets() -> None:
    """Make socket(2) fail with EAFNOSUPPORT for AF_UNIX, AF_VSOCK and MPTCP, for good.

    socketpair(2) stays for streams: Node and Python make pipes to their children of it. One of
    datagrams could send to any address. prlimit(2) on another process is refused as well: the
    supervisor has the same UID.

    Raises:
        OSError: the kernel refused, or this machine's system call numbers are not known.
    """
    program = _program(*_numbers())
    buffer = ctypes.create_string_buffer(program, len(program))

    # struct sock_fprog: how many instructions, and where.
    fprog = struct.pack("HP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value, pointer in (
        (_PR_SET_NO_NEW_PRIVS, 1, None),
        (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, fprog),
    ):
        if libc.prctl(option, ctypes.c_ulong(value), pointer, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _numbers() -> tuple[int, int, int]:
    machine = platform.machine()
    if machine not in _NUMBERS_BY_MACHINE:
        raise OSError(errno.ENOSYS, f"no filter is written for {machine}")
    return _NUMBERS_BY_MACHINE[machine]


def _program(socket_number: int, pair_number: int, prlimit_number: int) -> bytes:
    """Return the BPF program: a block for each call, which the ones before jump over."""
    refused = (_RETURN, 0, 0, _FAIL | errno.EAFNOSUPPORT)
    allowed = (_RETURN, 0, 0, _ALLOW)
    make = [
        (_LOAD, 0, 0, _ARGUMENT_0),
        *((_JUMP_IF_EQUAL, len(_FAMILIES) - i + 2, 0, f) for i, f in enumerate(_FAMILIES)),
        (_LOAD, 0, 0, _ARGUMENT_2),
        (_JUMP_IF_EQUAL, 1, 0, _IPPROTO_MPTCP),
        allowed,
        refused,
    ]
    pair = [
        (_LOAD, 0, 0, _ARGUMENT_1),
        (_AND, 0, 0, _KIND_MASK),
        (_JUMP_IF_EQUAL, 1, 0, socket.SOCK_STREAM),
        (_JUMP_IF_EQUAL, 0, 1, socket.SOCK_SEQPACKET),
        allowed,
        refused,
    ]
    limit = [
        (_LOAD, 0, 0, _ARGUMENT_0),
        (_JUMP_IF_EQUAL, 0, 1, 0),
        allowed,
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
    ]
    lines = [(_LOAD, 0, 0, _NUMBER)]
    for number, block in ((socket_number, make), (pair_number, pair), (prlimit_number, limit)):
        lines += [(_JUMP_IF_EQUAL, 0, len(block), number), *block]
    return b"".join(struct.pack("HBBI", *line) for line in [*lines, allowed])
