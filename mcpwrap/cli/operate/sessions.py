"""`mcpwrap sessions`: list open sessions with server and agent. Reads only."""

from datetime import UTC, datetime

import click
import msgspec

from mcpwrap.cli.common.output import print_json, print_table
from mcpwrap.errors import EXIT_OK
from mcpwrap.linux import accounts, tty
from mcpwrap.machine import observer, sessions


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `--json` for each session."""

    session: str
    name: str
    agent: str
    agent_uid: int
    since: str  # RFC 3339, UTC
    tasks: int  # processes and threads of the server
    hub: str = ""  # by which the agent uses the server


@click.command("sessions")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, as_json: bool) -> int:
    """List the open sessions, with their servers and agents.

    \b
    Example:  mcpwrap sessions --json | jq -r '.[].session'
    """
    rows = [_row(running) for running in sessions.running(observer.server_names())]
    if as_json:
        print_json(rows)
    elif rows:
        print_table(
            ["SESSION", "SERVER", "AGENT", "SINCE", "TASKS"],
            [[r.session, r.name, _user(r), r.since, str(r.tasks)] for r in rows],
        )
    else:
        tty.say("no sessions")
    return EXIT_OK


def _row(running: sessions.RunningSession) -> SessionRow:
    return SessionRow(
        session=running.id,
        name=running.name,
        agent=accounts.name_of(running.agent_uid) or str(running.agent_uid),
        agent_uid=running.agent_uid,
        since=datetime.fromtimestamp(running.since_s, UTC).isoformat(timespec="seconds"),
        tasks=running.tasks,
        hub=running.hub,
    )


def _user(row: SessionRow) -> str:
    return f"{row.agent} by {row.hub}" if row.hub else row.agent
