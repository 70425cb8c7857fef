"""Reporter of `mcpwrap wrap --json`, and the schema of its output: one object, at the end.

The output has no value of a secret.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from mcpwrap.cli.agents.discovery import DiscoveredFile, FileOwner
from mcpwrap.cli.agents.entry_display import kind_of, project_of, runs_of
from mcpwrap.cli.agents.wrap import proposal as wrap_proposal
from mcpwrap.cli.agents.wrap import select_files
from mcpwrap.cli.agents.wrap.decision import EntryLocation, WrapDecisions
from mcpwrap.cli.agents.wrap.edits import FileChange
from mcpwrap.cli.agents.wrap.proposal import Proposal
from mcpwrap.cli.agents.wrap.text_reporter import SkippedFiles
from mcpwrap.cli.common.output import print_json
from mcpwrap.config.agent_files.parsed_file import ListedServer
from mcpwrap.config.agent_files.plugin_layouts import Plugin
from mcpwrap.config.agent_files.wrap_status import WrapState
from mcpwrap.config.migration.draft import Draft
from mcpwrap.config.toml_writer import toml_of
from mcpwrap.errors import McpwrapError


class WrapServerRow(msgspec.Struct, frozen=True, kw_only=True):
    """Server of a file. Fields that `mcpwrap clients --json` has too mean the same."""

    name: str
    project: str
    state: WrapState  # now
    server: str  # mcpwrap's server that it leads to, or will; "": the entry stays as it is
    is_new: bool  # root did not have that server when the command began
    why: str  # the reason why the entry stays as it is
    kind: Literal["stdio", "remote", ""]
    runs: str


class WrapFileRow(msgspec.Struct, frozen=True, kw_only=True):
    """Selected file."""

    agents: list[str]
    scope: str
    path: str
    sha256: str  # of a project's file that was read: for `--sha256`
    problem: str  # the reason why it stays as it is
    is_written: bool
    backup: str  # path; "": it was not rewritten
    left_over: list[str]  # secrets that are still elsewhere in it: `KEY of SERVER`
    servers: list[WrapServerRow]  # empty if the file was refused


class NewServer(msgspec.Struct, frozen=True, kw_only=True):
    """New server that is proposed to root; of its secrets only the keys."""

    name: str
    definition: str  # TOML, as in the proposal
    secrets: list[str]  # whose values are in the file, and are sealed
    from_variables: dict[str, list[str]]  # that get the values of the caller's own variables
    missing: list[str]  # that have to be set by `mcpwrap secret set`
    notes: list[str]


class ProposalRow(msgspec.Struct, frozen=True, kw_only=True):
    """Proposal that root has not accepted yet."""

    sha256: str
    path: str
    command: str  # for root
    is_written: bool


class WrapReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whole output of `--json`."""

    done: bool  # every server of these files is wrapped
    files: list[WrapFileRow]
    new: list[NewServer]
    notes: list[str]
    proposal: ProposalRow | None


class JsonReporter:
    """Reporter that records each step, and prints one object at the end."""

    roots_output = 2  # standard output is for the object alone

    def __init__(
        self, who: FileOwner, files: Sequence[DiscoveredFile], goal: WrapState = "wrapped"
    ) -> None:
        self._who, self._files, self._goal = who, files, goal
        self._first = self._look = WrapDecisions()
        self._refused: dict[tuple[Path, Plugin | None], str] = {}
        self._failed: dict[Path, str] = {}
        self._todo: dict[Path, FileChange] = {}
        self._why_by_place: dict[EntryLocation, str] = {}
        self._server_by_place: dict[EntryLocation, str] = {}
        self._backup_by_path: dict[Path, Path] = {}
        self._proposal: Proposal | None = None
        self._is_proposed = False

    def planned(
        self, look: WrapDecisions, todo: Sequence[FileChange], refused: SkippedFiles
    ) -> None:
        """Record the planned changes."""
        self._first = look
        self._refused = {(found.path, found.plugin): why for found, why in refused}
        self._take(look, todo)
        if look.drafts:
            self._proposal = wrap_proposal.proposal_of(self._who, look)

    def looked_again(
        self, before: WrapDecisions, look: WrapDecisions, todo: Sequence[FileChange]
    ) -> None:
        """Record the changes that are made after root has applied the new servers."""
        self._take(look, todo)

    def _take(self, look: WrapDecisions, todo: Sequence[FileChange]) -> None:
        self._look = look
        self._todo = {one.path: one for one in todo}
        self._why_by_place = {one.place(): one.why for one in look.skipped}
        self._server_by_place = look.server_by_place()

    def remark(self, text: str) -> None:
        """Ignore the remark: the object has it."""

    def asks(self, proposal: Proposal) -> None:
        """Record that the proposal was written."""
        self._proposal, self._is_proposed = proposal, True

    def cannot_ask(self, proposal: Proposal) -> None:
        """Record that the proposal was written."""
        self.asks(proposal)

    def answered(self, *, is_yes: bool) -> None:
        """Remove the proposal if root has accepted it."""
        if is_yes:
            self._proposal = None

    def written(self, one: FileChange, backup: Path) -> None:
        """Record a file that was rewritten."""
        self._backup_by_path[one.path] = backup

    def failed(self, one: FileChange, error: McpwrapError) -> None:
        """Record a file that could not be rewritten."""
        self._failed[one.path] = error.named_problem

    def end(self) -> None:
        """Print the object."""
        print_json(self.outcome())

    def outcome(self) -> WrapReport:
        """Return the object to print."""
        files = [self._file_row(found) for found in self._files]
        is_done = {"wrapped", self._goal}
        servers = [server for row in files for server in row.servers]
        return WrapReport(
            done=not any(f.problem for f in files) and all(s.state in is_done for s in servers),
            files=files,
            new=[_new_server(draft) for draft in self._first.drafts],
            notes=self._first.notes,
            proposal=self._proposal_row(),
        )

    def _file_row(self, found: DiscoveredFile) -> WrapFileRow:
        todo = self._todo.get(found.path)
        return WrapFileRow(
            agents=[agent.id for agent in found.agents],
            scope=found.file.scope,
            path=str(found.path),
            sha256=select_files.digest(found) if found.opened and found.project else "",
            problem=self._problem(found),
            is_written=found.path in self._backup_by_path,
            backup=str(self._backup_by_path.get(found.path, "")),
            left_over=list(todo.left_over) if todo else [],
            servers=list(self._server_rows(found)),
        )

    def _problem(self, found: DiscoveredFile) -> str:
        """Return why a file stays as it is. Plugins that share a file have a reason each."""
        path = found.path
        why = self._refused.get((path, found.plugin)) or self._failed.get(path)
        return why or (self._todo[path].problem if path in self._todo else "")

    def _server_rows(self, found: DiscoveredFile) -> Iterable[WrapServerRow]:
        """Yield the servers of a file that was not refused."""
        for listed in found.listed:
            place = (found.path, listed.entry.path)
            if place in self._look.status_by_location:
                yield self._server_row(listed, place)

    def _server_row(self, listed: ListedServer, place: EntryLocation) -> WrapServerRow:
        stands = self._look.status_by_location[place]
        why = self._why_by_place.get(place, "")
        server = "" if why else self._server_by_place.get(place, stands.server)
        is_written = server and place[0] in self._backup_by_path
        return WrapServerRow(
            name=listed.entry.name,
            project=project_of(listed),
            state=self._goal if is_written else stands.state,
            server=server,
            is_new=any(draft.server.name == server for draft in self._first.drafts),
            why=why,
            kind=kind_of(listed.launch),
            runs=runs_of(listed.launch),
        )

    def _proposal_row(self) -> ProposalRow | None:
        if (found := self._proposal) is None:
            return None
        return ProposalRow(
            sha256=found.sha256,
            path=str(found.path),
            command=found.command,
            is_written=self._is_proposed,
        )


def _new_server(draft: Draft) -> NewServer:
    """Return the output for a server that root does not have yet."""
    own = draft.variables_by_key
    return NewServer(
        name=draft.server.name,
        definition=toml_of(draft.server),
        secrets=[key for key in draft.value_by_key if key not in own],
        from_variables={key: list(names) for key, names in own.items()},
        missing=list(draft.missing),
        notes=[note.replace("NAME", draft.server.name) for note in draft.notes],
    )
