"""`mcpwrap sessions`: list open sessions with server, agent and project. Reads only."""

from datetime import UTC, datetime

import click
import msgspec

from mcpwrap.cli.common.output import print_json, print_table
from mcpwrap.core.wire.session_socket import ProtocolError
from mcpwrap.errors import EXIT_OK, McpwrapError
from mcpwrap.gate_client import queries
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
    project: str = ""  # folder that the server sees; of other accounts for root and adm only


@click.command("sessions")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, as_json: bool) -> int:
    """List the open sessions, with their servers, agents and projects.

    The projects of other accounts are for root and members of adm.

    \b
    Example:  mcpwrap sessions --json | jq -r '.[].session'
    """
    found = sessions.running(observer.server_names())
    projects = _projects() if found else {}
    rows = [_row(one, projects.get((one.id, one.agent_uid), "")) for one in found]
    if as_json:
        print_json(rows)
    elif rows:
        more = ["PROJECT"] if any(r.project for r in rows) else []
        print_table(
            ["SESSION", "SERVER", "AGENT", "SINCE", "TASKS", *more],
            [
                [r.session, r.name, _user(r), r.since, str(r.tasks), *([r.project] if more else [])]
                for r in rows
            ],
        )
    else:
        tty.say("no sessions")
    return EXIT_OK


def _projects() -> dict[tuple[str, int], str]:
    """Return the projects that this account may know, by session and agent."""
    try:
        return {(one.session, one.uid): one.path for one in queries.seen_projects()}
    except (OSError, ProtocolError, McpwrapError) as error:
        why = error.problem if isinstance(error, McpwrapError) else str(error)
        tty.warn(f"without projects, since the gate does not name them: {why}")
        return {}


def _row(running: sessions.RunningSession, project: str) -> SessionRow:
    return SessionRow(
        session=running.id,
        name=running.name,
        agent=accounts.name_of(running.agent_uid) or str(running.agent_uid),
        agent_uid=running.agent_uid,
        since=datetime.fromtimestamp(running.since_s, UTC).isoformat(timespec="seconds"),
        tasks=running.tasks,
        hub=running.hub,
        project=project,
    )


def _user(row: SessionRow) -> str:
    return f"{row.agent} by {row.hub}" if row.hub else row.agent
