"""Ownership check of a server's code by the wrapper, before each start of the server."""

from itertools import chain

from mcpwrap.core.wire.server_files import ServerSpec
from mcpwrap.linux.executables.launch import launches_of_python
from mcpwrap.linux.executables.look import ExecutableScan, launches_of


def expect_unchanged(spec: ServerSpec) -> None:
    """Refuse to start code that an account other than root can change, unless root allowed that.

    Raises:
        PermissionError: such an account can change it now, and could not at the last `apply`.
    """
    if spec.writable_command or spec.remote or (spec.python and spec.python.worker):
        return
    if spec.python:
        launches = launches_of_python(spec.python.python, installs=spec.python.installs)
    else:
        lists = [folder.path for folder in spec.workspaces.projects] if spec.workspaces else []
        launches = launches_of(spec.command, spec.args, spec.cwd, spec.env, lists)
    look = ExecutableScan()
    if finding := next(chain.from_iterable(map(look.paths, launches)), None):
        why = f"{finding}; `mcpwrap plan` shows what to do [E-PROGRAM-WRITABLE]"
        # A Python server's table has no part with the name of the finding's.
        raise PermissionError(why if spec.python else f"{finding.part}: {why}")
