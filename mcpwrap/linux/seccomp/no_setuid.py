"""Seccomp filter of a server of `mcpwrap run`, which can make no setuid or setgid file.

The server's process enters it before execve(2), the last of three (as_agent/run/sandbox/layers.py).

Such a file would run under its owner's account for every user who starts it, also after the
session. Units have `RestrictSUIDSGID=` against that; the calls are those of systemd's
seccomp_restrict_suid_sgid(), with O_TMPFILE added.
"""

import errno
import os
import stat

from mcpwrap.linux.seccomp import bpf
from mcpwrap.linux.seccomp.bpf import AND, JUMP_IF_EQUAL, LOAD, Line

MACHINES = ("x86_64", "aarch64")
# By name: the number on each machine, None where it has no such call; and the mode's offset.
MODE_GIVEN: dict[str, tuple[tuple[int | None, int | None], int]] = {
    "chmod": ((90, None), bpf.ARGUMENT_1), "fchmod": ((91, 52), bpf.ARGUMENT_1),
    "fchmodat": ((268, 53), bpf.ARGUMENT_2), "fchmodat2": ((452, 452), bpf.ARGUMENT_2),
    "mkdir": ((83, None), bpf.ARGUMENT_1), "mkdirat": ((258, 34), bpf.ARGUMENT_2),
    "mknod": ((133, None), bpf.ARGUMENT_1), "mknodat": ((259, 33), bpf.ARGUMENT_2),
    "creat": ((85, None), bpf.ARGUMENT_1),
}  # fmt: skip
# The same with the offset of the flags, which decide whether there is a mode, and of the mode.
MODE_PERHAPS: dict[str, tuple[tuple[int | None, int | None], int, int]] = {
    "open": ((2, None), bpf.ARGUMENT_1, bpf.ARGUMENT_2),
    "openat": ((257, 56), bpf.ARGUMENT_2, bpf.ARGUMENT_3),
}
# Its mode is in memory, which a filter cannot read. Programs fall back to openat(2).
ABSENT = {"openat2": (437, 437)}
_GAINING = stat.S_ISUID | stat.S_ISGID
# O_TMPFILE contains O_DIRECTORY, which does not mean that there is a mode: it is left out.
_MAKING = os.O_CREAT | (os.O_TMPFILE & ~os.O_DIRECTORY)


def enter() -> None:
    """Refuse setuid and setgid modes to this process and its children.

    System call numbers of other architectures are not checked.

    Raises:
        OSError: the kernel refused, or this machine's numbers are not known.
    """
    machine = MACHINES.index(bpf.this_machine(MACHINES))
    lines: list[Line] = [(LOAD, 0, 0, bpf.NUMBER)]
    for numbers, mode in MODE_GIVEN.values():
        lines += _block(numbers[machine], _judged(mode))
    for numbers, flags, mode in MODE_PERHAPS.values():
        lines += _block(numbers[machine], _judged_if_made(flags, mode))
    for absent in ABSENT.values():
        lines += _block(absent[machine], [bpf.refused(errno.ENOSYS)])
    bpf.enter([*lines, bpf.ALLOWED])


def _block(number: int | None, lines: list[Line]) -> list[Line]:
    return [] if number is None else bpf.block(number, lines)


def _judged(mode: int) -> list[Line]:
    return [
        (LOAD, 0, 0, mode),
        (AND, 0, 0, _GAINING),
        (JUMP_IF_EQUAL, 1, 0, 0),
        bpf.refused(errno.EPERM),
        bpf.ALLOWED,
    ]


def _judged_if_made(flags: int, mode: int) -> list[Line]:
    """Check the mode only with these flags: without them its register holds an unused value."""
    return [
        (LOAD, 0, 0, flags),
        (AND, 0, 0, _MAKING),
        (JUMP_IF_EQUAL, 0, 1, 0),
        bpf.ALLOWED,
        *_judged(mode),
    ]
