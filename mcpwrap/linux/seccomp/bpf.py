"""BPF programs for seccomp(2): instructions, one block per system call, and installation.

The filters of servers are built from it: `run_server`, `wrapped_server` and `no_setuid`.

Source: seccomp(2), linux/filter.h, linux/seccomp.h; the values are the kernel's.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Sequence

from mcpwrap.linux.isolation import prctl

LOAD, AND, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
# Where things are in struct seccomp_data; of arguments the low halves, which is where an int is.
NUMBER, ARCHITECTURE = 0, 4
ARGUMENT_0, ARGUMENT_1, ARGUMENT_2, ARGUMENT_3 = 16, 24, 32, 40
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000

Line = tuple[int, int, int, int]  # struct sock_filter: code, jump if true, jump if not, value

ALLOWED: Line = (RETURN, 0, 0, _ALLOW)


def refused(error_number: int) -> Line:
    """Return the line that lets the call fail with this error."""
    return (RETURN, 0, 0, _FAIL | error_number)


def block(number: int, lines: Sequence[Line]) -> list[Line]:
    """Return lines for one system call, whose number is loaded. They end in a decision."""
    return [(JUMP_IF_EQUAL, 0, len(lines), number), *lines]


def this_machine(machines: Sequence[str]) -> str:
    """Return the architecture, if its numbers are known.

    Raises:
        OSError: they are not.
    """
    machine = platform.machine()
    if machine not in machines:
        raise OSError(errno.ENOSYS, f"no filter is written for {machine}")
    return machine


def enter(lines: Sequence[Line]) -> None:
    """Let this program judge all system calls from now on, of this process and its children.

    Raises:
        OSError: the kernel refused.
    """
    program = b"".join(struct.pack("HBBI", *line) for line in lines)
    buffer = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: how many instructions, and where.
    fprog = struct.pack("HP", len(lines), ctypes.addressof(buffer))
    prctl.gain_nothing()  # without it only root may
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), fprog, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
