"""Decisions of `mcpwrap wrap`: entries that are rewritten, and entries that stay."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mcpwrap.cli.agents.discovery import DiscoveredFile
from mcpwrap.config.agent_files.entry_schema import RunLine
from mcpwrap.config.agent_files.parsed_file import ListedServer, ParsedFile
from mcpwrap.config.agent_files.syntax.document import Key
from mcpwrap.config.agent_files.wrap_status import AppliedServers, WrapStatus
from mcpwrap.config.migration.draft import Draft
from mcpwrap.config.model import GROUPS, Destination, Group, Server

Egress = Mapping[str, tuple[Destination | Group, ...]]  # by the name of an entry; "" is for all
EntryLocation = tuple[Path, tuple[Key, ...]]  # a file, and an entry of it


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedState:
    """State of the machine: servers that root has configured, and those that are applied."""

    known: AppliedServers
    servers: Mapping[str, Server] = field(default_factory=dict)  # that this person may use
    taken: frozenset[str] = frozenset()  # names of servers
    sources: frozenset[str] = frozenset(GROUPS)  # host groups that this machine configures
    unset: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # secrets without a value


@dataclass(frozen=True, slots=True)
class EntryRewrite:
    """Entry, and mcpwrap's server that it leads to when it is rewritten."""

    found: DiscoveredFile
    opened: ParsedFile
    listed: ListedServer
    server: str
    is_remote: bool
    inherits: tuple[str, ...] = ()  # variables that the agent still passes to the stub
    run: RunLine | None = None  # the line of `mcpwrap run` that starts it without root

    def place(self) -> EntryLocation:
        """Return the file and the path of the entry in it."""
        return self.found.path, self.listed.entry.path


@dataclass(frozen=True, slots=True)
class SkippedEntry:
    """Entry that stays as it is, with the reason."""

    found: DiscoveredFile
    listed: ListedServer
    why: str

    def place(self) -> EntryLocation:
        """Return the file and the path of the entry in it."""
        return self.found.path, self.listed.entry.path


@dataclass(slots=True)
class WrapDecisions:
    """All decisions of one pass over the files."""

    rewrites: list[EntryRewrite] = field(default_factory=list)
    skipped: list[SkippedEntry] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)  # servers that root does not have yet
    secrets: list[tuple[str, str, str]] = field(default_factory=list)  # server, key, value
    notes: list[str] = field(default_factory=list)
    status_by_location: dict[EntryLocation, WrapStatus] = field(
        default_factory=dict
    )  # of all entries, before any change

    def without_drafts(self) -> "WrapDecisions":
        """Return the decisions after root was asked: servers that root lacks now are skipped."""
        absent = {draft.server.name for draft in self.drafts}
        left = [
            SkippedEntry(
                one.found,
                one.listed,
                f"root's configuration has no equal server {one.server} [E-WRAP-SERVER-DIFFERS]",
            )
            for one in self.rewrites
            if one.server in absent
        ]
        rewrites = [one for one in self.rewrites if one.server not in absent]
        return replace(self, rewrites=rewrites, skipped=[*self.skipped, *left], drafts=[])

    def server_by_place(self) -> dict[EntryLocation, str]:
        """Return the server of each rewritten entry."""
        return {one.place(): one.server for one in self.rewrites}
