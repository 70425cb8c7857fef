"""`mcpwrap purge`: execute root's program, which lists what it removes and asks."""

import click

from mcpwrap.cli.common.become_root import become_root_program


@click.command("purge")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def command(*, yes: bool) -> int:
    """Remove configuration, state, secrets, audit, accounts and packet rules. Needs root.

    To be run before the package itself is removed, by `rpm -e` above all, which keeps these. It
    lists them and asks. If it is interrupted, run it again.

    \b
    Example:  sudo mcpwrap purge
    Exit status: 0 done, 1 not confirmed or a step failed, 2 wrong usage.
    """
    become_root_program("purge", *(["--yes"] if yes else []))
