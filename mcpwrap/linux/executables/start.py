"""Ownership check of a server's code by the wrapper, before each start of the server."""

from mcpwrap.core.wire.server_files import ServerSpec
from mcpwrap.linux.executables.launch import launch_of
from mcpwrap.linux.executables.look import ExecutableScan


def expect_unchanged(spec: ServerSpec) -> None:
    """Refuse to start what not root alone can change, unless root allowed that.

    Raises:
        PermissionError: it can be changed, and could not when `apply` looked at it.
    """
    if spec.writable_command or spec.remote:
        return
    launch = launch_of(spec.command, spec.args, spec.cwd, spec.env)
    if finding := next(ExecutableScan().paths(launch), None):
        raise PermissionError(f"{finding.part}: {finding}; `mcpwrap plan` says what to do")
