"""BPF programs for seccomp(2): instructions, one block per system call, and installation.

The filters of servers are built from these: `run_server`, `wrapped_server` and `no_setuid`.

Source: seccomp(2), linux/filter.h, linux/seccomp.h; the values are the kernel's.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Sequence

from mcpwrap.linux.isolation import prctl

LOAD, AND, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
# Offsets in struct seccomp_data. For arguments it is the low half, which holds an int.
NUMBER, ARCHITECTURE = 0, 4
ARGUMENT_0, ARGUMENT_1, ARGUMENT_2, ARGUMENT_3 = 16, 24, 32, 40
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000

Line = tuple[int, int, int, int]  # struct sock_filter: code, jump if true, jump if not, value

ALLOWED: Line = (RETURN, 0, 0, _ALLOW)


def refused(error_number: int) -> Line:
    """Return the instruction that makes the call fail with this error."""
    return (RETURN, 0, 0, _FAIL | error_number)


def block(number: int, lines: Sequence[Line]) -> list[Line]:
    """Return the instructions for one system call, whose number is loaded; `lines` decide it."""
    return [(JUMP_IF_EQUAL, 0, len(lines), number), *lines]


def this_machine(machines: Sequence[str]) -> str:
    """Return the machine's architecture, if its system call numbers are known.

    Raises:
        OSError: they are not known.
    """
    machine = os.uname().machine  # platform.machine() takes 0.2 ms the first time
    if machine not in machines:
        raise OSError(errno.ENOSYS, f"mcpwrap has no seccomp filter for {machine}")
    return machine


def expect_filters() -> None:
    """Refuse a kernel without filters of system calls. A missing program is no bad address there.

    Raises:
        OSError: it has none.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), None, 0, 0)
    if ctypes.get_errno() != errno.EFAULT:  # as systemd's is_seccomp_available()
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def enter(lines: Sequence[Line]) -> None:
    """Install this program as filter of all system calls of this process and its children.

    Raises:
        OSError: the kernel refused.
    """
    program = b"".join(struct.pack("HBBI", *line) for line in lines)
    buffer = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: number of instructions, and their address.
    fprog = struct.pack("HP", len(lines), ctypes.addressof(buffer))
    prctl.gain_nothing()  # without it only root may install a filter
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), fprog, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
