"""`mcpwrap panic` and `resume`: start and lift the emergency stop."""

from typing import NoReturn

import click

from mcpwrap.cli.common.become_root import become_root_program


@click.command("panic")
@click.argument("name", required=False)
def panic(name: str | None) -> NoReturn:
    """End every session at once, or those of NAME, and refuse new ones. Needs root.

    \b
    Example:  sudo mcpwrap panic
    New sessions are refused until `mcpwrap resume`, also after a reboot and after `apply`.
    """
    become_root_program("panic", *([name] if name else []))


@click.command("resume")
@click.argument("name", required=False)
def resume(name: str | None) -> NoReturn:
    """Admit sessions again after `mcpwrap panic`, of all servers or of NAME. Needs root.

    \b
    Example:  sudo mcpwrap resume
    """
    become_root_program("resume", *([name] if name else []))
