"""What is taken from a server between fork and exec, beyond what its unit took from all of us."""

import os
import resource

from mcpwrap.linux import seccomp

KEPT_FD = 3  # where the one descriptor that the exec closes lies


def close(stdio: tuple[int, int, int], *, keep_fd: int) -> None:
    """Leave descriptors 0 to 2, and 3 until the exec; no core dumps; no unix sockets.

    The first three are moved out of the way before any is put in place.
    """
    above = [os.dup(fd) for fd in (*stdio, keep_fd)]
    while min(above) <= KEPT_FD:
        above = [os.dup(fd) for fd in above]
    for target, fd in enumerate(above):
        os.dup2(fd, target, inheritable=target < KEPT_FD)
    os.closerange(KEPT_FD + 1, 1_048_576)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seccomp.refuse_sockets()
