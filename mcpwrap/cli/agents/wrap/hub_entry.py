"""Hub of all servers that one list of an agent has, and the entry that replaces theirs."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mcpwrap.cli.agents.discovery import DiscoveredFile
from mcpwrap.cli.agents.wrap.decision import AppliedState, WrapDecisions
from mcpwrap.cli.agents.wrap.edits import FileChange, left_over
from mcpwrap.config.agent_files.entry_schema import Stub
from mcpwrap.config.agent_files.entry_writer import replaced
from mcpwrap.config.agent_files.parsed_file import ListedServer, ParsedFile
from mcpwrap.config.agent_files.syntax.document import FileError
from mcpwrap.config.agent_files.transport import StdioTransport
from mcpwrap.config.migration.hub import USUAL_NAME, hub_draft, namespace_for
from mcpwrap.config.model import Hub, HubMember
from mcpwrap.core.hub.agent_profiles import AGENT_PROFILES
from mcpwrap.core.names import server_name_for
from mcpwrap.errors import UsageError


@dataclass(frozen=True, slots=True)
class JoinedList:
    """Entries of one table of a file, each with its server, that one entry replaces."""

    found: DiscoveredFile
    opened: ParsedFile
    server_by_entry: Sequence[tuple[ListedServer, str]]

    def servers(self) -> list[str]:
        """Return the servers, each once."""
        return list(dict.fromkeys(server for _, server in self.server_by_entry))

    def of_hub(self, members: Collection[str]) -> "JoinedList":
        """Return those of its entries whose servers are members."""
        left = [pair for pair in self.server_by_entry if pair[1] in members]
        return replace(self, server_by_entry=left)


def joined_list(
    files: Iterable[DiscoveredFile], look: WrapDecisions, machine: AppliedState
) -> JoinedList | None:
    """Return the entries that lead to a server, or will; None if there is none.

    Raises:
        UsageError: they are in several lists. An agent that reads one of them would get the tools
            of all others by the hub.
    """
    server_by_place = look.server_by_place()
    lists: dict[tuple[object, ...], JoinedList] = {}
    for found in files:
        for listed in found.listed if found.opened else ():
            place = (found.path, listed.entry.path)
            status = look.status_by_location.get(place)
            wrapped = status.server if status and status.state == "wrapped" else ""
            server = server_by_place.get(place, wrapped)
            if not server or found.opened is None or _is_hub(server, machine):
                continue
            key = (found.path, listed.at)
            known = lists.setdefault(key, JoinedList(found, found.opened, ()))
            pairs = (*known.server_by_entry, (listed, server))
            lists[key] = replace(known, server_by_entry=pairs)
    if len(lists) > 1:
        raise UsageError(
            f"the servers are in {len(lists)} lists, and a hub would give each agent the tools of"
            " all; nothing was changed",
            where="--hub",
            fix="name one agent, or one file with `--file`",
            code="E-WRAP-HUB-LISTS",
        )
    return next(iter(lists.values()), None)


def _is_hub(server: str, machine: AppliedState) -> bool:
    known = machine.servers.get(server)
    return known is not None and isinstance(known.runs, Hub)


def members_for(servers: Iterable[str]) -> list[HubMember]:
    """Return members with namespaces after their servers' names."""
    return [HubMember(name=name, namespace=namespace_for(name)) for name in servers]


def with_hub(
    look: WrapDecisions, machine: AppliedState, account: str, members: list[HubMember], name: str
) -> str:
    """Add the draft of the hub of these members, unless it exists, and return its name.

    `name` is "" for the usual one, with a number if another server has it.

    Raises:
        UsageError: the name is that of another server, or not valid.
    """
    taken = machine.taken | {draft.server.name for draft in look.drafts}
    draft = hub_draft(name or USUAL_NAME, account, members)
    for known, server in machine.servers.items():
        if server.runs == draft.server.runs and name in {"", known}:
            return known
    if name in taken:
        raise UsageError(
            f"another server has the name {name}; nothing was changed",
            where="--hub",
            fix="give another name; root can add members to a hub that exists: `man mcpwrap.toml`",
            code="E-HUB-NAME-TAKEN",
        )
    name = name or server_name_for(USUAL_NAME, taken)
    look.drafts.append(hub_draft(name, account, members))
    return name


def joined_change(joined: JoinedList, hub: str, look: WrapDecisions) -> FileChange:
    """Return the change of the file: one entry for the hub, in the place of the first of them."""
    found, entries = joined.found, [listed for listed, _ in joined.server_by_entry]
    at, names = entries[0].at, [listed.entry.name for listed in entries]
    agent = found.agents[0]
    taken = dict.fromkeys(name for listed in entries for name in _inherited(listed))
    change = FileChange(
        path=found.path, agent=agent.id, was=found.content, hub=hub, listed=found.listed
    )
    if any(one.at == at and one.entry.name == hub for one in found.listed) and hub not in names:
        problem = f"has another entry {hub!a}: give the hub another name [E-WRAP-HUB-ENTRY]"
        return replace(change, problem=problem)
    try:
        entry = agent.words.new_entry(hub, Stub(hub, tuple(taken)))
        new = replaced(joined.opened, at, names, {hub: entry})
    except FileError as error:
        return replace(change, problem=error.named_problem)
    return replace(
        change,
        new=new,
        entries=tuple((*at, name) for name in names),
        left_over=tuple(left_over(new, look)),
    )


def _inherited(listed: ListedServer) -> tuple[str, ...]:
    return listed.launch.inherits if isinstance(listed.launch, StdioTransport) else ()


def permission_notes(joined: JoinedList, hub: str) -> Iterator[str]:
    """Yield how rules of agents name the tools from now on: the person changes their own rules."""
    titles = {agent.title for agent in joined.found.agents}
    for profile in AGENT_PROFILES:
        if profile.name not in titles:
            continue
        new = profile.prefix.format(hub=hub)
        for listed, server in joined.server_by_entry:
            old = profile.prefix.format(hub=listed.entry.name)
            yield (
                f"in permission rules of {profile.name}, write {new}{namespace_for(server)}__*"
                f" for {old}*"
            )
