"""`mcpwrap convert FILE --client X`: print entries for an agent's file. Reads only."""

import os
from pathlib import Path

import click
import msgspec

from mcpwrap.cli.common import input_file
from mcpwrap.cli.common.output import print_json
from mcpwrap.config.agent_files.entry_schema import ListenerUrl, Stub, Target
from mcpwrap.config.agent_files.entry_writer import Entries, config_fragment, new_entries
from mcpwrap.config.agent_files.known_agents import BY_ID, KnownAgent
from mcpwrap.config.parse import parse
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.errors import EXIT_OK
from mcpwrap.linux import tty
from mcpwrap.machine import listener_files


@click.command("convert")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--client",
    required=True,
    type=click.Choice(sorted(BY_ID)),
    help="The agent that will read the entries.",
)
@click.option("--http", is_flag=True, help="Write the local URL of each server that has one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, file: Path, client: str, http: bool, as_json: bool) -> int:
    """Print the entries that the agent CLIENT needs in its file for the servers in FILE.

    \b
    Example:  mcpwrap convert /etc/mcpwrap/config.toml --client codex
    FILE has the format of `man mcpwrap.toml`; it need not be applied yet.
    Exit status: 0 done, 2 FILE has errors; all of them are shown.
    """
    agent = BY_ID[client]
    targets = _targets(list(parse([input_file.read(file)]).servers), agent, urls(http=http))
    found = new_entries(agent, targets)
    if as_json:
        print_json(_report(agent, found))
    else:
        tty.say_lines(config_fragment(agent, found).removesuffix("\n").split("\n"))
    return EXIT_OK


def urls(*, http: bool) -> dict[str, str]:
    """Return the URLs of this account's listeners by server; with `http` false, an empty dict."""
    by_url = listener_files.urls_of(os.geteuid()) if http else {}
    return {name: f"{url}/" for url, name in by_url.items()}


def _targets(names: list[str], agent: KnownAgent, url_by_name: dict[str, str]) -> dict[str, Target]:
    """Return each entry's target: the stub where a server has no URL, or the agent no URL key."""
    can = bool(agent.words.urls)
    return {
        name: ListenerUrl(url_by_name[name]) if can and name in url_by_name else Stub(name)
        for name in names
    }


def _report(agent: KnownAgent, found: Entries) -> dict[str, Json]:
    """Return the output of `--json`: possible files, their new entries, and these as text."""
    return {
        "client": agent.id,
        "files": [{"scope": file.scope, "path": file.path} for file in agent.files],
        "servers": msgspec.to_builtins(found),
        "text": config_fragment(agent, found),
    }
