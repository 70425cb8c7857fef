"""Sandbox of a server (Landlock, seccomp) in addition to its unit's, closed before execve(2)."""

import errno
import fcntl
import os
import resource
from dataclasses import dataclass

from mcpwrap.linux.isolation import landlock
from mcpwrap.linux.seccomp import no_namespaces, wrapped_server

_ABOVE = 64  # a descriptor is moved here, where none of the server's replaces it
# The cgroup tree, where it could leave its session; the supervisor's credentials; our folders.
_SHUT = frozenset({"/sys/fs/cgroup", "/run/credentials", "/run/mcpwrap"})


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Settings of the sandbox that differ from session to session."""

    own_folder: str  # the folder below /run/mcpwrap that stays accessible
    may_be_degraded: bool  # root allowed a kernel without Landlock
    has_namespaces: bool = False  # the unit allows the calls that make them
    covered: tuple[str, ...] = ()  # entries of the root folder that are mounted over later


def keep_only(fd: int, as_fd: int) -> int:
    """Make a descriptor `as_fd`, until the exec, and return that; all above it are closed."""
    if fd != as_fd:
        os.dup2(fd, as_fd, inheritable=False)
    os.closerange(as_fd + 1, 1_048_576)
    return as_fd


@dataclass(frozen=True, slots=True)
class PreparedSandbox:
    """Sandbox that is still open, with the part of it that takes time."""

    sandbox: Sandbox
    ruleset_fd: int | None

    def close(self) -> None:
        """Close the sandbox.

        Raises:
            OSError: the kernel refused a part of it.
        """
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.ruleset_fd is not None:
            for path in self.sandbox.covered:  # a rule for what is below a mount does not count
                landlock.allow(self.ruleset_fd, path)
            landlock.restrict(self.ruleset_fd)
        wrapped_server.refuse_sockets()
        if self.sandbox.has_namespaces:
            no_namespaces.refuse_namespaces()


def prepare(sandbox: Sandbox) -> PreparedSandbox:
    """Prepare a sandbox. To entries of the root folder that appear later it refuses access.

    Raises:
        OSError: the kernel refused, or lacks Landlock where that is required.
    """
    ruleset_fd = None
    if landlock.version():
        made_fd = landlock.ruleset_without(_SHUT, frozenset({sandbox.own_folder}))
        ruleset_fd = fcntl.fcntl(made_fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
        os.close(made_fd)
    elif not sandbox.may_be_degraded:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    return PreparedSandbox(sandbox, ruleset_fd)
