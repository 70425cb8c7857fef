"""`mcpwrap apply`: execute root's program, which makes the plan itself."""

import click

from mcpwrap.cli.common.become_root import become_root_program


@click.command("apply")
@click.option("--purge", is_flag=True, help="Also remove state and secrets of removed servers.")
def command(*, purge: bool) -> int:
    """Make this machine match /etc/mcpwrap. Needs root.

    \b
    Example:  sudo mcpwrap apply
    If it is interrupted, run it again. Agents are not admitted to a server before it is complete.
    Exit status: 0 done, 1 a step failed, 2 the configuration has errors, or this machine lacks a
    mechanism that it needs, and nothing was changed.
    """
    become_root_program("apply", *(["--purge"] if purge else []))
