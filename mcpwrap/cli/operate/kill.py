"""`mcpwrap kill SESSION`: end one session and no other."""

import click

from mcpwrap.cli.common.become_root import expect_root
from mcpwrap.errors import EXIT_OK, McpwrapError, UsageError
from mcpwrap.linux import tty
from mcpwrap.machine import observer, sessions


@click.command("kill")
@click.argument("session")
def command(session: str) -> int:
    """End SESSION: kill all its processes, and notify its agent. Needs root.

    \b
    Example:  sudo mcpwrap kill 5f0c2a9be1d34877      # `mcpwrap sessions` shows the number
    Exit status: 0 it has ended, 1 it could not be killed, 2 there is no such session.
    """
    expect_root("kill")
    found = [r for r in sessions.running(observer.server_names()) if r.id == session]
    if not found:
        raise UsageError(
            f"no session {session!r}",
            where="mcpwrap kill",
            fix="`mcpwrap sessions` lists the sessions",
            code="E-USAGE-NO-SESSION",
        )
    try:
        found[0].leaf.end()
    except TimeoutError as error:
        raise McpwrapError(
            str(error),
            where="mcpwrap kill",
            fix=f"`sudo mcpwrap restart {found[0].name}` ends all sessions of the server",
            code="E-KILL-TIMEOUT",
        ) from error
    tty.say(f"{found[0].name}: session {session} has ended")
    return EXIT_OK
