"""`mcpwrap convert FILE --client X`: print entries for an agent's file. Reads only.

A list of proxied servers is converted into mcpwrap's configuration first, or only that is printed.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from mcpwrap.cli.agents.discovery import file_owner
from mcpwrap.cli.agents.wrap import proxied_list
from mcpwrap.cli.agents.wrap.decide import EntryDecider
from mcpwrap.cli.agents.wrap.decision import AppliedState, WrapDecisions
from mcpwrap.cli.agents.wrap.proxied_list import ProxiedList
from mcpwrap.cli.common import input_file
from mcpwrap.cli.common.output import print_json
from mcpwrap.config.agent_files.entry_schema import FROM_WINDOWS, ListenerUrl, Stub, Target
from mcpwrap.config.agent_files.entry_writer import Entries, config_fragment, new_entries
from mcpwrap.config.agent_files.known_agents import BY_ID, KnownAgent
from mcpwrap.config.agent_files.wrap_status import AppliedServers
from mcpwrap.config.migration.hub import USUAL_NAME, expect_hub_name
from mcpwrap.config.model import Hub, Local, Server
from mcpwrap.config.parse import parse_part
from mcpwrap.config.toml_writer import toml_of
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.errors import EXIT_OK, EXIT_USAGE, UsageError
from mcpwrap.linux import tty
from mcpwrap.linux.os_release import distribution
from mcpwrap.machine import listener_files, package_sources

_InheritsByName = Mapping[str, tuple[str, ...]]  # variables that the agent passes to each server


@click.command("convert")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--client", type=click.Choice(sorted(BY_ID)), help="Agent that reads the entries.")
@click.option("--http", is_flag=True, help="Write the local URL of each server that has one.")
@click.option("--wsl", is_flag=True, help="Write the entries of an agent that Windows runs.")
@click.option("--hub", default="", metavar="NAME", help="Only the entry of this hub.")
@click.option("--json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(
    context: click.Context, /, *, file: Path, client: str | None, hub: str, **how: bool
) -> int:
    """Print the entries that the agent CLIENT needs in its file for the servers in FILE.

    \b
    Example:  mcpwrap convert /etc/mcpwrap/config.toml --client codex
    FILE has the format of `man mcpwrap.toml`; it need not be applied yet. Members of a hub have no
    entry: the hub offers their tools. FILE can also be a list of proxied servers, such as
    proxied-mcp-servers.json: its hub has one entry, and without --client its servers are printed
    as configuration, without the values of secrets. With --wsl the entries are for a file of an
    agent that Windows runs, beside WSL2 in which mcpwrap is installed: they start the stub by
    wsl.exe, under the default account of the default distribution.
    Exit status: 0 done, 2 FILE has errors; all of them are shown.
    """
    proxied = proxied_list.read_list(Path.cwd(), file)
    if proxied and not client:
        return _print_configuration(proxied, hub, context.obj or {})
    inherits = _of_list(proxied, hub) if proxied else _of_servers(file, hub)
    if not client:
        raise UsageError(
            "the command line names no agent",
            where="--client",
            fix=f"give one of {', '.join(sorted(BY_ID))}",
            code="E-CONVERT-NO-CLIENT",
        )
    _print_entries(BY_ID[client], inherits, **how)
    return EXIT_OK


def _print_entries(
    agent: KnownAgent, inherits: _InheritsByName, *, http: bool, json: bool, wsl: bool
) -> None:
    if http and wsl:
        raise UsageError(
            "an agent that Windows runs has no account here, and so reaches no listener",
            where="mcpwrap convert",
            fix="leave out --http",
            code="E-USAGE-EXCLUSIVE-OPTIONS",
        )
    if wsl and (names := sorted({name for taken in inherits.values() for name in taken})):
        tty.warn(f"note: Windows passes on {', '.join(names)} only if WSLENV there names them")
    before = FROM_WINDOWS if wsl else ()
    found = new_entries(agent, _targets(inherits, agent, urls(http=http), before))
    if json:
        print_json(_report(agent, found))
    else:
        tty.say_lines(config_fragment(agent, found).removesuffix("\n").split("\n"))


def urls(*, http: bool) -> dict[str, str]:
    """Return the URLs of this account's listeners by server; with `http` false, an empty dict."""
    by_url = listener_files.urls_of(os.geteuid()) if http else {}
    return {name: f"{url}/" for url, name in by_url.items()}


def _of_list(proxied: ProxiedList, hub: str) -> _InheritsByName:
    expect_hub_name(hub or USUAL_NAME)
    inherited = dict.fromkeys(name for one in proxied.servers for name in one.launch.inherits)
    return {hub or USUAL_NAME: tuple(inherited)}


def _of_servers(file: Path, hub: str) -> _InheritsByName:
    """Return the servers that need an entry: hubs, and servers that are members of none."""
    servers = parse_part([input_file.read(file)]).servers
    hubs = {name: one.runs for name, one in servers.items() if isinstance(one.runs, Hub)}
    if hub and hub not in hubs:
        raise UsageError(
            f"the file has no hub {hub!a:.80}",
            where="--hub",
            fix=f"give one of {', '.join(hubs)}" if hubs else "leave it out",
            code="E-CONVERT-NO-HUB",
        )
    members = {member.name for one in hubs.values() for member in one.members}
    if missing := sorted(members - servers.keys()):
        tty.warn(
            f"note: {', '.join(missing)}: not in this file, so the entry of the hub does not name"
            " what they inherit"
        )
    names = [hub] if hub else [name for name in servers if name not in members]
    return {name: _inherited(servers[name], servers) for name in names}


def _inherited(server: Server, servers: Mapping[str, Server]) -> tuple[str, ...]:
    """Return the variables that the agent passes to a server; to a hub, those of its members."""
    match server.runs:
        case Local(inherits=names, inherits_any=any_value):
            return (*names, *any_value)
        case Hub(members=members):
            known = [servers[one.name] for one in members if one.name in servers]
            return tuple(dict.fromkeys(name for one in known for name in _inherited(one, servers)))
        case _:
            return ()


def _print_configuration(proxied: ProxiedList, hub: str, environ: Mapping[str, str]) -> int:
    """Print the servers of a list, and their hub, as TOML; to standard error what it leaves out."""
    who = file_owner(os.geteuid(), Path.cwd(), environ)
    if os.geteuid() == 0:
        who = replace(who, account="@mcpwrap")  # root runs no agent
    sources = package_sources.found(distribution())
    machine = AppliedState(known=AppliedServers({}), sources=frozenset(sources))
    decider = EntryDecider(who, machine, {}, {})
    look, _ = proxied_list.decisions(decider, machine, who.account, proxied, hub)
    _warn(look)
    if look.skipped:
        return EXIT_USAGE
    for draft in look.drafts:
        tty.say_lines(toml_of(draft.server).split("\n"))
    return EXIT_OK


def _warn(look: WrapDecisions) -> None:
    for one in look.skipped:
        tty.warn(f"{one.listed.entry.name}: {one.why}")
    for note in look.notes:
        tty.warn(f"note: {note}")
    for draft in look.drafts:
        name = draft.server.name
        for key in (*draft.value_by_key, *draft.missing):
            tty.warn(f"secret, which is not printed: `sudo mcpwrap secret set {name} {key}`")
        for note in draft.notes:
            tty.warn(f"note: {name}: {note.replace('NAME', name)}")


def _targets(
    inherits: _InheritsByName,
    agent: KnownAgent,
    url_by_name: dict[str, str],
    before: tuple[str, ...],
) -> dict[str, Target]:
    """Return each entry's target: the stub where a server has no URL, or the agent no URL key."""
    can = bool(agent.words.urls)
    return {
        name: ListenerUrl(url_by_name[name])
        if can and name in url_by_name
        else Stub(name, taken, before)
        for name, taken in inherits.items()
    }


def _report(agent: KnownAgent, found: Entries) -> dict[str, Json]:
    """Return the output of `--json`: possible files, their new entries, and these as text."""
    return {
        "client": agent.id,
        "files": [{"scope": file.scope, "path": file.path} for file in agent.files],
        "servers": msgspec.to_builtins(found),
        "text": config_fragment(agent, found),
    }
