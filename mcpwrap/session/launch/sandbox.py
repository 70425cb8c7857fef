"""Sandbox of a server (Landlock, seccomp) in addition to its unit's, closed before execve(2)."""

import errno
import os
import resource
from dataclasses import dataclass

from mcpwrap.linux.isolation import landlock
from mcpwrap.linux.seccomp import no_namespaces, wrapped_server

# The cgroup tree, where it could leave its session; the supervisor's credentials; our folders.
_SHUT = frozenset({"/sys/fs/cgroup", "/run/credentials", "/run/mcpwrap"})


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Settings of the sandbox that differ from session to session."""

    own_folder: str  # the folder below /run/mcpwrap that stays accessible
    may_be_degraded: bool  # root allowed a kernel without Landlock
    has_namespaces: bool = False  # the unit allows the calls that make them


def keep_only(fd: int, as_fd: int) -> None:
    """Make a descriptor `as_fd`, until the exec; all above it are closed."""
    if fd != as_fd:
        os.dup2(fd, as_fd, inheritable=False)
    os.closerange(as_fd + 1, 1_048_576)


def close(sandbox: Sandbox) -> None:
    """Close the sandbox.

    Raises:
        OSError: the kernel refused a part of it, or lacks Landlock where that is required.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if landlock.version():
        landlock.shut(_SHUT, frozenset({sandbox.own_folder}))
    elif not sandbox.may_be_degraded:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    wrapped_server.refuse_sockets()
    if sandbox.has_namespaces:
        no_namespaces.refuse_namespaces()
