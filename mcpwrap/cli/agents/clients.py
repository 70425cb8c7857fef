"""`mcpwrap clients`: list the servers in agents' own files, wrapped or not. Reads only."""

import os
from pathlib import Path
from typing import Literal

import click
import msgspec

from mcpwrap.cli.agents import notify as agents_notify
from mcpwrap.cli.agents.discovery import DiscoveredFile, FileOwner, file_owner, found, known
from mcpwrap.cli.agents.entry_display import kind_of, project_of, runs_of
from mcpwrap.cli.common.output import print_json
from mcpwrap.config.agent_files.parsed_file import ListedServer
from mcpwrap.config.agent_files.wrap_status import AppliedServers, WrapState, wrap_status_of
from mcpwrap.core.names import server_name_for
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.errors import EXIT_FAILED, EXIT_OK
from mcpwrap.linux import tty

NO_FILES = "no files of known agents were found: `man mcpwrap` lists the known agents"
_BAD = {"raw", "drifted"}
_COLOURS: dict[WrapState, tty.Style] = {
    "wrapped": "green",
    "run": "green",
    "raw": "yellow",
    "drifted": "red",
    "not understood": "red",
    "off": "bright_black",
}
_MAX_WIDTH = 40  # of the names of servers


class ServerRow(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `--json` for each server of a file, without arguments, variables and headers."""

    name: str
    project: str  # the folder to which the file restricts it; "" is no restriction
    state: WrapState
    server: str  # mcpwrap's server that it leads to, or the name that it would get
    why: str
    kind: Literal["stdio", "remote", ""]
    runs: str  # the command, or the origin of the URL


class FileRow(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `--json` for each file."""

    agents: list[str]
    scope: str
    path: str
    plugin: str  # that has it, by the agent's name for it
    problem: str  # why it was not read
    servers: list[ServerRow]


@click.command("clients")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--notify", is_flag=True, help="Notify on the desktop of what is new; print nothing.")
@click.pass_context
def command(context: click.Context, *, as_json: bool, notify: bool) -> int:
    """Show the agents of this account, the servers in their files, and whether each is wrapped.

    \b
    Example:  mcpwrap clients --json | jq '.files[].servers[] | select(.state == "raw")'
    Files of projects are looked for in the current folder and those above it, up to the top of its
    repository. Servers of plugins and extensions are shown too. States:
    wrapped: leads to a server that root has applied. run: `mcpwrap run` starts it, confined under
    this account. raw: starts the program without mcpwrap.
    drifted: has mcpwrap's command or URL, but leads to no applied server, or has other settings
    beside it. off: disabled in the agent.
    With --notify each raw or drifted server is reported once until it is wrapped. The user unit
    mcpwrap-drift.path runs that whenever a file changes.
    Exit status: 0 no server is raw or drifted, 1 a server is, or a file could not be read.
    With --notify: 0 a notification was shown, or there is nothing new.
    """
    environ = context.obj or {}
    who = file_owner(os.geteuid(), Path.cwd(), environ)
    if notify:
        agents_notify.run(who, known(who), agents_notify.notify_settings(environ))
        return EXIT_OK
    rows = file_rows(who, known(who))
    if as_json:
        print_json({"files": rows})
    elif rows:
        show(rows)
    else:
        tty.say(NO_FILES)
    is_bad = any(row.problem or any(s.state in _BAD for s in row.servers) for row in rows)
    return EXIT_FAILED if is_bad else EXIT_OK


def file_rows(who: FileOwner, by: AppliedServers) -> list[FileRow]:
    """Return one row for each file."""
    return [_file_row(one, by) for one in found(who)]


def _file_row(one: DiscoveredFile, by: AppliedServers) -> FileRow:
    taken = set(by.inherits_by_server)
    return FileRow(
        agents=[agent.id for agent in one.agents],
        scope=one.file.scope,
        path=str(one.path),
        plugin=one.plugin.id if one.plugin else "",
        problem=one.problem,
        servers=[_server_row(one, listed, by, taken) for listed in one.listed],
    )


def _server_row(
    one: DiscoveredFile, listed: ListedServer, by: AppliedServers, taken: set[str]
) -> ServerRow:
    stands = wrap_status_of(listed, by)
    name, why = stands.server, stands.why
    if stands.state == "raw":
        why = why or one.advice.get(listed.entry.name, "")
        name = server_name_for(listed.entry.name, taken)
        taken.add(name)
    return ServerRow(
        name=listed.entry.name,
        project=project_of(listed),
        state=stands.state,
        server=name,
        why=why,
        kind=kind_of(listed.launch),
        runs=runs_of(listed.launch),
    )


def show(rows: list[FileRow]) -> None:
    """Print each file, and below it one line for each of its servers."""
    for row in rows:
        scope = f"plugin {row.plugin}" if row.plugin else row.scope
        title = f"{', '.join(row.agents)}, {scope}: {row.path}"
        if row.problem:
            tty.warn(f"{title}: {row.problem}")
            continue
        tty.say(tty.styled(title, "bold"))
        names = [_name(server) for server in row.servers]
        width = min(max(map(len, names), default=0), _MAX_WIDTH)
        for name, server in zip(names, row.servers, strict=True):
            state = tty.styled(server.state, _COLOURS[server.state])
            detail = _detail(server)
            tty.say(f"  {name:{width}}  ", state, f"{detail and ': '}{detail}")
            if server.state == "raw" and server.why:
                tty.say(f"    {server.why}")
        if not row.servers:
            tty.say("  no servers")


def _detail(server: ServerRow) -> str:
    match server.state:
        case "wrapped":
            return server.server
        case "run":
            return f"{server.server or server.runs}, confined without root"
        case "raw":
            return server.runs
        case _:
            return server.why


def _name(server: ServerRow) -> str:
    return one_line(f"{server.name} (in {server.project})" if server.project else server.name)
