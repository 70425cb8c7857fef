"""What is taken from a server between fork and exec, beyond what its unit took from all of us."""

import errno
import os
import resource
from dataclasses import dataclass

from mcpwrap.linux import landlock, seccomp

# The cgroup tree, by which it could leave its session; what the supervisor holds; our folders.
_SHUT = frozenset({"/sys/fs/cgroup", "/run/credentials", "/run/mcpwrap"})

KEPT_FD = 3  # where the one descriptor that the exec closes lies


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What differs from session to session."""

    own_folder: str  # the one below /run/mcpwrap that stays open
    may_be_degraded: bool  # root wrote that a kernel without Landlock will do


def close(sandbox: Sandbox, stdio: tuple[int, int, int], *, keep_fd: int) -> None:
    """Leave descriptors 0 to 2, and 3 until the exec; no core dumps, no unix sockets, no way out.

    Raises:
        OSError: the kernel refused a part of it, or has no Landlock and must have.
    """
    _place(stdio, keep_fd)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if landlock.version():
        landlock.shut(_SHUT, frozenset({sandbox.own_folder}))
    elif not sandbox.may_be_degraded:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    seccomp.refuse_sockets()


def _place(stdio: tuple[int, int, int], keep_fd: int) -> None:
    """Put the descriptors where they belong, each moved out of the others' way first."""
    above = [os.dup(fd) for fd in (*stdio, keep_fd)]
    while min(above) <= KEPT_FD:
        above = [os.dup(fd) for fd in above]
    for target, fd in enumerate(above):
        os.dup2(fd, target, inheritable=target < KEPT_FD)
    os.closerange(KEPT_FD + 1, 1_048_576)
