"""`mcpwrap apply`: hand over to root's own program, which plans for itself."""

import os

import click

from mcpwrap.errors import UsageError
from mcpwrap.plan import paths


@click.command("apply")
@click.option("--purge", is_flag=True, help="Also remove the state of servers that are gone.")
def command(*, purge: bool) -> int:
    """Make this machine match /etc/mcpwrap. Needs root.

    \b
    Example:  sudo mcpwrap apply
    Broken off, it leaves what a second run completes, and nobody let in.
    Exit status: 0 done, 1 a step failed, 2 the configuration is wrong and nothing was changed.
    """
    if os.geteuid() != 0:
        raise UsageError("needs root", where="mcpwrap apply", fix="run `sudo mcpwrap apply`")
    argv = [paths.ROOT_PROGRAM, "apply", *(["--purge"] if purge else [])]
    try:
        os.execve(argv[0], argv, {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"})
    except FileNotFoundError as error:
        raise UsageError(
            "this machine has mcpwrap only as a Python package",
            where=paths.ROOT_PROGRAM,
            fix="install the .deb, which brings the units, the rules and root's program",
        ) from error
