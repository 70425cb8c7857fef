"""`mcpwrap apply`: execute root's own program, which plans by itself."""

import click

from mcpwrap.cli.common.become_root import become_root_program


@click.command("apply")
@click.option(
    "--purge", is_flag=True, help="Also remove state and secrets of servers that are gone."
)
def command(*, purge: bool) -> int:
    """Make this machine match /etc/mcpwrap. Needs root.

    \b
    Example:  sudo mcpwrap apply
    Broken off, it leaves what a second run completes, and nobody let in.
    Exit status: 0 done, 1 a step failed, 2 the configuration is wrong and nothing was changed.
    """
    become_root_program("apply", *(["--purge"] if purge else []))
