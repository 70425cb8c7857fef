"""Sandbox of a server (Landlock, seccomp), closed between fork and exec, beyond its unit's."""

import errno
import os
import resource
from dataclasses import dataclass

from mcpwrap.linux.isolation import landlock
from mcpwrap.linux.seccomp import wrapped_server

# The cgroup tree, by which it could leave its session; what the supervisor holds; our folders.
_SHUT = frozenset({"/sys/fs/cgroup", "/run/credentials", "/run/mcpwrap"})


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Settings of the sandbox that differ from session to session."""

    own_folder: str  # the one below /run/mcpwrap that stays open
    may_be_degraded: bool  # root wrote that a kernel without Landlock will do


def close(sandbox: Sandbox, *, keep_fd: int, as_fd: int) -> None:
    """Leave no descriptor over `as_fd`, which is `keep_fd` until the exec; and no way out.

    Raises:
        OSError: the kernel refused a part of it, or has no Landlock and must have.
    """
    if keep_fd != as_fd:
        os.dup2(keep_fd, as_fd, inheritable=False)
    os.closerange(as_fd + 1, 1_048_576)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if landlock.version():
        landlock.shut(_SHUT, frozenset({sandbox.own_folder}))
    elif not sandbox.may_be_degraded:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    wrapped_server.refuse_sockets()
