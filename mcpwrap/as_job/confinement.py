"""Confinement of a run beyond its unit, entered between fork(2) and execve(2).

The unit confines run supervisor and run alike. These two are for the run alone: Landlock, by which
it writes to its own folders and cannot signal or trace the run supervisor, whose UID it has; and a
filter of calls that neither unit nor Landlock restricts:

- socketpair(2) with another family than AF_UNIX: `RestrictAddressFamilies=` does not refuse it, and
  it loads kernel modules and creates their sockets.
- prlimit(2) and sched_setaffinity(2) on the run supervisor: they need the same UID alone. With them
  a run would end the run supervisor by a limit of its memory, descriptors or processor time.
"""

import errno
import os
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
# System call numbers: socketpair, prlimit64, sched_setaffinity.
_NUMBERS = {"x86_64": (53, 302, 203), "aarch64": (199, 261, 122)}


def enter() -> None:
    """Confine this process, a child of the run supervisor, and its own children for good.

    Raises:
        OSError: the kernel has no Landlock, it refused, or this machine's numbers are not known.
    """
    landlock.leave(["/"], WRITABLE, landlock.Tcp.REFUSED)
    socketpair, prlimit, set_affinity = _NUMBERS[bpf.this_machine(tuple(_NUMBERS))]
    not_on_supervisor = _refused_on(os.getppid())
    bpf.enter(
        [
            (bpf.LOAD, 0, 0, bpf.NUMBER),
            *bpf.block(socketpair, _ONLY_UNIX),
            *bpf.block(prlimit, not_on_supervisor),
            *bpf.block(set_affinity, not_on_supervisor),
            bpf.ALLOWED,
        ]
    )


def _refused_on(pid: int) -> list[bpf.Line]:
    return [
        (bpf.LOAD, 0, 0, bpf.ARGUMENT_0),
        (bpf.JUMP_IF_EQUAL, 1, 0, pid),
        bpf.ALLOWED,
        bpf.refused(errno.EPERM),
    ]


_ONLY_UNIX: list[bpf.Line] = [
    (bpf.LOAD, 0, 0, bpf.ARGUMENT_0),
    (bpf.JUMP_IF_EQUAL, 0, 1, socket.AF_UNIX),
    bpf.ALLOWED,
    bpf.refused(errno.EPERM),
]
