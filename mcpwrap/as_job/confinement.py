"""Confinement of a run beyond its unit, entered between fork(2) and execve(2).

The unit confines run supervisor and run alike. These two are for the run alone: Landlock, by which
it writes to its own folders and cannot signal or trace the run supervisor, whose UID it has; and a
filter of socketpair(2), which `RestrictAddressFamilies=` does not restrict: with another family
than AF_UNIX it loads kernel modules and creates their sockets.
"""

import errno
import socket

from mcpwrap.linux.isolation import landlock
from mcpwrap.linux.seccomp import bpf

WRITABLE = (
    "/tmp",  # noqa: S108 - of the slot, and empty when a run starts
    "/var/tmp",  # noqa: S108
    "/out",
    "/dev/shm",  # noqa: S108
    "/run/mcpwrap-job",  # the value of the last expression
    "/dev/null",
    "/dev/zero",
    "/dev/full",
)
_SOCKETPAIR = {"x86_64": 53, "aarch64": 199}  # system call numbers


def enter() -> None:
    """Confine this process and its children for good.

    Raises:
        OSError: the kernel has no Landlock, it refused, or this machine's numbers are not known.
    """
    landlock.leave(["/"], WRITABLE, landlock.Tcp.REFUSED)
    number = _SOCKETPAIR[bpf.this_machine(tuple(_SOCKETPAIR))]
    bpf.enter([(bpf.LOAD, 0, 0, bpf.NUMBER), *bpf.block(number, _ONLY_UNIX), bpf.ALLOWED])


_ONLY_UNIX: list[bpf.Line] = [
    (bpf.LOAD, 0, 0, bpf.ARGUMENT_0),
    (bpf.JUMP_IF_EQUAL, 0, 1, socket.AF_UNIX),
    bpf.ALLOWED,
    bpf.refused(errno.EPERM),
]
