"""Decision of `mcpwrap wrap --unprivileged` for each entry: its line of `mcpwrap run`, or why not.

Entries of one name with one command share a server's name, and so its home and its policy rules.
"""

from collections.abc import Iterable, Iterator

from mcpwrap.cli.agents.discovery import DiscoveredFile, FileOwner
from mcpwrap.cli.agents.wrap import entry_context
from mcpwrap.cli.agents.wrap.decide import ReplaceChecks
from mcpwrap.cli.agents.wrap.decision import EntryRewrite, SkippedEntry, WrapDecisions
from mcpwrap.config.agent_files.entry_schema import RunLine
from mcpwrap.config.agent_files.parsed_file import ListedServer, ParsedFile
from mcpwrap.config.agent_files.run_line import is_run_line, parse_run_line, run_arguments
from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport, UnknownTransport
from mcpwrap.config.agent_files.wrap_status import AppliedServers, WrapStatus, wrap_status
from mcpwrap.config.migration import unprivileged
from mcpwrap.config.migration.draft import MigrationError
from mcpwrap.config.migration.unprivileged import RunDraft
from mcpwrap.core.names import server_name_for

_DONE = {"wrapped", "run"}
_Identity = tuple[str, ...]  # folder, and command or URL


class RunNames:
    """Names of servers in lines of `run`: those of all files that are found, and new ones."""

    def __init__(self, files: Iterable[DiscoveredFile]) -> None:
        self._identity_by_name: dict[str, _Identity] = {}
        for listed in (listed for found in files for listed in found.listed):
            if isinstance(listed.launch, StdioTransport) and is_run_line(listed.launch):
                line = parse_run_line(listed.launch.args)
                identity = (listed.launch.cwd, *(line.command or (line.url,)))
                self._identity_by_name.setdefault(line.name, identity)

    def name_for(self, listed: ListedServer, command: tuple[str, ...]) -> str:
        """Return the name of an entry's server; a server that differs never shares its home."""
        folder = listed.launch.cwd if isinstance(listed.launch, StdioTransport) else ""
        identity, taken = (folder, *command), set[str]()
        while True:
            name = server_name_for(listed.entry.name, taken)
            if self._identity_by_name.setdefault(name, identity) == identity:
                return name
            taken.add(name)


class RunDecider:
    """Decides the entries in order."""

    def __init__(
        self, who: FileOwner, known: AppliedServers, program: str, names: RunNames
    ) -> None:
        self._who, self._known, self._program, self._names = who, known, program, names
        self._files = ReplaceChecks()

    def through(self, files: Iterable[DiscoveredFile]) -> WrapDecisions:
        """Return the decisions for all entries that start a program or have a URL."""
        look = WrapDecisions()
        for found in files:
            if found.opened is not None:
                for listed in found.listed:
                    self._entry(look, found, found.opened, listed)
        return look

    def _entry(
        self, look: WrapDecisions, found: DiscoveredFile, opened: ParsedFile, listed: ListedServer
    ) -> None:
        stands = wrap_status(listed.launch, self._known)
        look.status_by_location[found.path, listed.entry.path] = stands
        if stands.state in _DONE:
            return
        try:
            draft = self._draft(found, listed, stands)
        except MigrationError as error:
            look.skipped.append(SkippedEntry(found, listed, str(error)))
            return
        name = self._names.name_for(listed, draft.command or draft.options[1:2])
        args = run_arguments(name, draft.options, draft.command)
        line = RunLine(self._program, args, draft.env, draft.inherits)
        is_remote = isinstance(listed.launch, HttpTransport)
        look.rewrites.append(EntryRewrite(found, opened, listed, name, is_remote, run=line))
        look.notes.extend(_notes(found, listed, draft))

    def _draft(self, found: DiscoveredFile, listed: ListedServer, stands: WrapStatus) -> RunDraft:
        if isinstance(listed.launch, UnknownTransport):
            raise MigrationError(listed.launch.why, code="E-AGENT-ENTRY")
        if why := stands.why or self._files.why_not(found):
            raise MigrationError(why)
        context = entry_context.around(self._who, found, listed)
        match listed.launch:
            case StdioTransport() as launch:
                named = unprivileged.filled(launch, context)
                context = entry_context.seen_by_run(named, context, self._who)
                return unprivileged.draft_program(listed, launch, context)
            case HttpTransport() as launch:
                return unprivileged.draft_remote(listed, launch, context)


def _notes(found: DiscoveredFile, listed: ListedServer, draft: RunDraft) -> Iterator[str]:
    for note in draft.notes:
        yield f"{listed.entry.name!a} of {found.path}: {note}"
