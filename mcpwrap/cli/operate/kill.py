"""`mcpwrap kill SESSION`: end one session and no other."""

import click

from mcpwrap.cli.common.become_root import expect_root
from mcpwrap.errors import EXIT_OK, McpwrapError, UsageError
from mcpwrap.linux import tty
from mcpwrap.machine import observer, sessions


@click.command("kill")
@click.argument("session")
def command(session: str) -> int:
    """End SESSION: every process of it is killed, and its agent told. Needs root.

    \b
    Example:  sudo mcpwrap kill 5f0c2a9be1d34877      # `mcpwrap sessions` has the number
    Exit status: 0 it is gone, 1 it could not be killed, 2 there is no such session.
    """
    expect_root("kill")
    found = [r for r in sessions.running(observer.server_names()) if r.id == session]
    if not found:
        raise UsageError(f"no session {session!r}", where="mcpwrap kill", fix="`mcpwrap sessions`")
    try:
        found[0].leaf.end()
    except TimeoutError as error:
        raise McpwrapError(
            str(error), where="mcpwrap kill", fix=f"`sudo mcpwrap restart {found[0].name}`"
        ) from error
    tty.say(f"{found[0].name}: session {session} is ended")
    return EXIT_OK
