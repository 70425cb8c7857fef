"""Agents' files that exist for the calling account, and the servers in them. Reads only."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from mcpwrap.config.agent_files.entry_schema import STUB
from mcpwrap.config.agent_files.known_agents import AGENTS, BY_ID, VARIABLES, AgentFile, KnownAgent
from mcpwrap.config.agent_files.parsed_file import MAX_BYTES, ListedServer, ParsedFile, servers
from mcpwrap.config.agent_files.plugin_layouts import PLUGINS, Plugin
from mcpwrap.config.agent_files.run_line import PROGRAM
from mcpwrap.config.agent_files.syntax.document import FileError
from mcpwrap.config.agent_files.transport import UnknownTransport
from mcpwrap.config.agent_files.wrap_status import AppliedServers
from mcpwrap.config.migration.draft import MigrationError
from mcpwrap.linux import accounts
from mcpwrap.machine import listener_files, observer
from mcpwrap.machine.agent_files import own_program, plugins, programs, wrap_records
from mcpwrap.machine.agent_files.files import UnreadableFile, project_folders
from mcpwrap.machine.agent_files.whole_file import open_whole, why_not
from mcpwrap.plan import paths

MAX_PROJECT_BYTES = 2**20  # of a file from a repository, which a stranger may have written


@dataclass(frozen=True, slots=True)
class FileOwner:
    """Account whose files are searched, with its folder and its variables."""

    uid: int
    folder: Path  # absolute; files of projects are here and in the folders above
    variables: Mapping[str, str]  # `HOME`, and those that agents read for their files' paths
    environ: Mapping[str, str]  # the whole environment
    account: str = ""  # the name of the account


@dataclass(frozen=True, slots=True)
class DiscoveredFile:
    """File, and all agents that read it. The entry schema of the first agent is used."""

    agents: tuple[KnownAgent, ...]
    file: AgentFile
    path: Path
    opened: ParsedFile | None  # None: `problem` says why, or it is a plugin's
    listed: tuple[ListedServer, ...] = ()
    problem: str = ""
    content: bytes = b""  # if it was opened
    project: str = ""  # the folder of a project's file; "" is a file of the person's own
    plugin: Plugin | None = None  # the plugin that has it
    advice: Mapping[str, str] = field(default_factory=dict)  # by server, for a plugin's file


class _Inherits(msgspec.Struct, frozen=True):
    """Inherited variables in a server descriptor; its other fields are ignored."""

    inherits: frozenset[str] = frozenset()
    inherits_any: frozenset[str] = frozenset()


def file_owner(uid: int, folder: Path, environ: Mapping[str, str]) -> FileOwner:
    """Return the owner with these variables. A relative path is relative to the folder."""
    variables = {
        name: str(folder / value) for name in VARIABLES if (value := environ.get(name, ""))
    }
    account = accounts.name_of(uid) or ""
    return FileOwner(uid, folder, {"HOME": str(Path.home())} | variables, environ, account)


def known(who: FileOwner) -> AppliedServers:
    """Return the applied servers, the URLs of this account's listeners, and mcpwrap's programs."""
    names = observer.server_names()
    by_url = listener_files.urls_of(who.uid)
    inherits = {name: _inherits(name) for name in names}
    return AppliedServers(inherits, by_url, _other_stub(who), _run_programs(who))


def _run_programs(who: FileOwner) -> frozenset[str]:
    """Return the commands that are known to be mcpwrap: this one, the installed, the recorded."""
    folder = wrap_records.folder({**who.environ, **who.variables})
    paths = {own_program.own_path(sys.argv[0]), own_program.INSTALLED}
    known = wrap_records.run_programs(folder) | paths
    by_name = None
    with suppress(MigrationError):  # a shim that chooses a version at each start
        by_name = programs.which(PROGRAM, who.environ.get("PATH", ""))
    return known | ({PROGRAM} if by_name in known else set())


def _other_stub(who: FileOwner) -> str:
    """Return the program that `PATH` has in place of the stub; "" if it has the stub."""
    found = programs.which(Path(STUB).name, who.environ.get("PATH", "")) or STUB
    return "" if Path(found).resolve() == Path(STUB).resolve() else found


def _inherits(name: str) -> frozenset[str]:
    try:
        content = Path(paths.spec(name)).read_bytes()
        found = msgspec.json.decode(content, type=_Inherits)
        return found.inherits | found.inherits_any
    except (OSError, msgspec.MsgspecError):
        return frozenset()


def found(who: FileOwner) -> list[DiscoveredFile]:
    """Return all existing files in the order of the table; each path of agents' own once."""
    by_path: dict[Path, DiscoveredFile] = {}
    for agent, file, path, project in _places(who):
        if earlier := by_path.get(path):
            if agent not in earlier.agents:
                by_path[path] = _also_of(earlier, agent)
        elif one := discover_file(who.uid, agent, file, path, project):
            by_path[path] = one
    brought = [one for one in _of_plugins(who) if one.listed or one.path not in by_path]
    return [*by_path.values(), *brought]


def _of_plugins(who: FileOwner) -> Iterator[DiscoveredFile]:
    for row in PLUGINS:
        agent = BY_ID[row.agent]
        for one in plugins.files(row, agent.words, who.uid, who.variables):
            names = [listed.entry.name for listed in one.listed]
            yield DiscoveredFile(
                (agent,),
                AgentFile("plugin", str(one.path)),
                one.path,
                None,  # never rewritten; the contents of all would be in memory at once
                one.listed,
                one.problem,
                plugin=one.plugin,
                advice={name: row.advice(one.plugin, name, who.variables) for name in names},
            )


def _also_of(one: DiscoveredFile, agent: KnownAgent) -> DiscoveredFile:
    """Add an agent to a file. Entries that it reads differently become unknown transports."""
    listed = tuple(_as_both_read(each, one.agents[0], agent) for each in one.listed)
    return replace(one, agents=(*one.agents, agent), listed=listed)


def _as_both_read(one: ListedServer, first: KnownAgent, other: KnownAgent) -> ListedServer:
    if isinstance(one.launch, UnknownTransport) or other.words.read(one.entry.value) == one.launch:
        return one
    why = f"{other.title} reads it differently from {first.title}"
    return replace(one, launch=UnknownTransport(why))


def _places(who: FileOwner) -> Iterator[tuple[KnownAgent, AgentFile, Path, Path | None]]:
    folders = list(project_folders(who.folder))
    for agent in AGENTS:
        for file in agent.files:
            place = file.place(who.variables)
            if file.scope != "project":
                yield agent, file, Path(place), None
                continue
            for folder in folders:
                yield agent, file, folder / place, folder


def discover_file(
    uid: int, agent: KnownAgent, file: AgentFile, path: Path, project: Path | None
) -> DiscoveredFile | None:
    """Return one file with its servers; None if it does not exist."""
    folder = str(project or "")
    max_bytes = MAX_PROJECT_BYTES if project else MAX_BYTES
    whole = open_whole(path, uid, file.language, within=project, max_bytes=max_bytes)
    if whole is None:
        return None
    unread = DiscoveredFile((agent,), file, path, None, project=folder)
    if isinstance(whole, UnreadableFile):
        return replace(unread, problem=whole.why)
    try:
        listed = tuple(servers(whole.opened, file.at, agent.words))
    except FileError as error:
        return replace(unread, problem=why_not(path, error).why)
    return replace(unread, opened=whole.opened, listed=listed, content=whole.content)
