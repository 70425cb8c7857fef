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

_SOCKET_BY_MACHINE = {"x86_64": 41, "aarch64": 198}
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NUMBER, _ARGUMENT_0, _ARGUMENT_2 = 0, 16, 32  # offsets in struct seccomp_data; low halves
_IPPROTO_MPTCP = 262
# Landlock and nft see TCP; vsock passes both, and a unix socket leads to every local service.
_FAMILIES = (socket.AF_UNIX, socket.AF_VSOCK)


def refuse_sockets() -> None:
    """Make socket(2) fail with EAFNOSUPPORT for AF_UNIX, AF_VSOCK and MPTCP, here and in children.

    socketpair(2) stays: Node and Python make pipes to their children of it.

    Raises:
        OSError: the kernel refused, or this machine's system call numbers are not known.
    """
    program = _program(_socket_number())
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


def _socket_number() -> int:
    machine = platform.machine()
    if machine not in _SOCKET_BY_MACHINE:
        raise OSError(errno.ENOSYS, f"no filter is written for {machine}")
    return _SOCKET_BY_MACHINE[machine]


def _program(socket_number: int) -> bytes:
    """Return the BPF program. A jump says how many lines to skip if equal, and if not."""
    count = len(_FAMILIES)
    lines = [
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_IF_EQUAL, 0, count + 3, socket_number),
        (_LOAD, 0, 0, _ARGUMENT_0),
        *((_JUMP_IF_EQUAL, count - i + 2, 0, family) for i, family in enumerate(_FAMILIES)),
        (_LOAD, 0, 0, _ARGUMENT_2),
        (_JUMP_IF_EQUAL, 1, 0, _IPPROTO_MPTCP),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL | errno.EAFNOSUPPORT),
    ]
    return b"".join(struct.pack("HBBI", *line) for line in lines)
