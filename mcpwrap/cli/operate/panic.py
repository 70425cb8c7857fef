"""`mcpwrap panic` and `resume`: stop everything at once, until that is lifted."""

from typing import NoReturn

import click

from mcpwrap.cli.common.become_root import become_root_program


@click.command("panic")
@click.argument("name", required=False)
def panic(name: str | None) -> NoReturn:
    """End every session at once, or those of NAME, and let nobody in. Needs root.

    \b
    Example:  sudo mcpwrap panic
    Until `mcpwrap resume`, also over a reboot and an `apply`.
    """
    become_root_program("panic", *([name] if name else []))


@click.command("resume")
@click.argument("name", required=False)
def resume(name: str | None) -> NoReturn:
    """Let agents in again after `mcpwrap panic`, to all servers or to NAME. Needs root.

    \b
    Example:  sudo mcpwrap resume
    """
    become_root_program("resume", *([name] if name else []))
