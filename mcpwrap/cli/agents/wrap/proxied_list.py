"""List of proxied servers for `mcpwrap wrap --file`: its entries become the members of one hub.

The file itself stays as it is: no agent reads it.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from mcpwrap.cli.agents.discovery import DiscoveredFile
from mcpwrap.cli.agents.wrap.decide import EntryDecider
from mcpwrap.cli.agents.wrap.decision import (
    AppliedState,
    SkippedEntry,
    WrapDecisions,
)
from mcpwrap.cli.agents.wrap.hub_entry import with_hub
from mcpwrap.cli.common import input_file
from mcpwrap.config.agent_files.known_agents import AgentFile
from mcpwrap.config.agent_files.parsed_file import ListedServer
from mcpwrap.config.agent_files.syntax.document import JSON, ServerEntry
from mcpwrap.config.agent_files.wrap_status import WrapStatus
from mcpwrap.config.migration.draft import MigrationError
from mcpwrap.config.migration.proxied_servers import ProxiedServer, is_proxied_list, parse_proxied
from mcpwrap.config.model import ConfigError, HubMember

_NOTE = (
    "each server has an account of its own here, and no permissions, files or network of a program"
    " that started it before; its PATH, HOME, USER, LOGNAME, TMPDIR and LANG are those of the"
    " account. Over HTTP it gets none of its `inherits`"
)


@dataclass(frozen=True, slots=True)
class ProxiedList:
    """Parsed list, and its file as `wrap` reports it."""

    found: DiscoveredFile
    servers: tuple[ProxiedServer, ...]


def read_list(folder: Path, path: Path) -> ProxiedList | None:
    """Return the list in a file; None if it is another file, or does not exist.

    Raises:
        ConfigError: with every problem of the list.
        FileError: it is not JSON.
    """
    whole = folder / path
    if not whole.is_file():
        return None
    file = input_file.read(whole)
    if not is_proxied_list(file.content):
        return None
    servers = parse_proxied(file)
    listed = tuple(_listed(number, one) for number, one in enumerate(servers))
    found = DiscoveredFile(
        (), AgentFile("user", str(whole)), whole, None, listed, project=str(whole.parent)
    )
    return ProxiedList(found, servers)


def _listed(number: int, one: ProxiedServer) -> ListedServer:
    entry = ServerEntry(
        name=one.name, path=(number,), value=None, members=(), region=None, form=JSON
    )
    return ListedServer(("",), entry, one.launch)  # the list has no key


def decisions(
    decider: EntryDecider, machine: AppliedState, account: str, proxied: ProxiedList, hub: str
) -> tuple[WrapDecisions, str]:
    """Return the decisions for a list, and the hub's name; "" if an entry cannot be converted.

    Raises:
        UsageError: the name of the hub is that of another server, or not valid.
        ConfigError: with each problem of the namespaces, which are those of the file.
    """
    look = decider.through(())
    members: dict[str, HubMember] = {}
    for one, listed in zip(proxied.servers, proxied.found.listed, strict=True):
        place = (proxied.found.path, listed.entry.path)
        try:
            name = decider.server_of_program(proxied.found, listed, members)
        except MigrationError as error:
            look.skipped.append(SkippedEntry(proxied.found, listed, str(error)))
            look.status_by_location[place] = WrapStatus("raw", "", str(error))
            continue
        is_there = name in machine.servers
        look.status_by_location[place] = WrapStatus("wrapped" if is_there else "raw", name)
        if name != one.name:
            look.notes.append(f"{one.name!a:.80} becomes the server {name}")
        members[name] = HubMember(
            name=name,
            namespace=one.namespace,
            instructions=one.instructions,
            transports=one.transports,
        )
    if look.skipped:
        return replace(look, drafts=[], secrets=[]), ""
    look.notes.append(_NOTE)
    try:
        return look, with_hub(look, machine, account, list(members.values()), hub)
    except ConfigError as error:
        file = str(proxied.found.path)
        raise ConfigError([replace(problem, file=file) for problem in error.problems]) from error
