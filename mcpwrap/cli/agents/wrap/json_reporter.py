"""Reporter of `mcpwrap wrap --json`, and the schema of its output: one object, at the end.

No value of a secret is in it.
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
    """Server of a file. The same words as in `mcpwrap clients --json` mean the same."""

    name: str
    project: str
    state: WrapState  # now
    server: str  # the one of ours that it leads to, or will; "": it is left as it is
    is_new: bool  # root does not have that server, or did not
    why: str  # it is left
    kind: Literal["stdio", "remote", ""]
    runs: str


class WrapFileRow(msgspec.Struct, frozen=True, kw_only=True):
    """File that was chosen."""

    agents: list[str]
    scope: str
    path: str
    sha256: str  # of a project's file that was read: for `--sha256`
    problem: str  # why it stays as it is
    is_written: bool
    backup: str  # of what it was; "": it was not rewritten
    left_over: list[str]  # secrets that still stand elsewhere in it: `KEY of SERVER`
    servers: list[WrapServerRow]  # none, if it was not gone through


class NewServer(msgspec.Struct, frozen=True, kw_only=True):
    """New server that root is asked for; of its secrets the keys."""

    name: str
    definition: str  # TOML, as in the proposal
    secrets: list[str]  # whose values stand in the file, and are sealed
    from_variables: dict[str, list[str]]  # those that get the values of the caller's own variables
    missing: list[str]  # those that somebody has to set
    notes: list[str]


class ProposalRow(msgspec.Struct, frozen=True, kw_only=True):
    """Proposal that root has not taken yet."""

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
    """Reporter that records what is done, and prints it when all is over."""

    roots_output = 2  # standard output has the one object

    def __init__(self, who: FileOwner, files: Sequence[DiscoveredFile]) -> None:
        self._who, self._files = who, files
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
        """Take down what would be done."""
        self._first = look
        self._refused = {(found.path, found.plugin): why for found, why in refused}
        self._take(look, todo)
        if look.drafts:
            self._proposal = wrap_proposal.proposal_of(self._who, look)

    def looked_again(
        self, before: WrapDecisions, look: WrapDecisions, todo: Sequence[FileChange]
    ) -> None:
        """Take down what is done instead."""
        self._take(look, todo)

    def _take(self, look: WrapDecisions, todo: Sequence[FileChange]) -> None:
        self._look = look
        self._todo = {one.path: one for one in todo}
        self._why_by_place = {one.place(): one.why for one in look.skipped}
        self._server_by_place = look.server_by_place()

    def remark(self, text: str) -> None:
        """Say nothing: it is in the object."""

    def asks(self, proposal: Proposal) -> None:
        """Take down that the proposal is there."""
        self._proposal, self._is_proposed = proposal, True

    def cannot_ask(self, proposal: Proposal) -> None:
        """Take down the same."""
        self.asks(proposal)

    def answered(self, *, is_yes: bool) -> None:
        """Take down that nothing is proposed any more, if root has taken it."""
        if is_yes:
            self._proposal = None

    def written(self, one: FileChange, backup: Path) -> None:
        """Take down a file that was rewritten."""
        self._backup_by_path[one.path] = backup

    def failed(self, one: FileChange, error: McpwrapError) -> None:
        """Take down one that was not."""
        self._failed[one.path] = error.problem

    def end(self) -> None:
        """Print it all."""
        print_json(self.outcome())

    def outcome(self) -> WrapReport:
        """Return what there is to say."""
        files = [self._file_row(found) for found in self._files]
        servers = [server for row in files for server in row.servers]
        return WrapReport(
            done=not any(f.problem for f in files) and all(s.state == "wrapped" for s in servers),
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
        """Return why a file stays. Several plugins may be of one, each with its own reason."""
        path = found.path
        why = self._refused.get((path, found.plugin)) or self._failed.get(path)
        return why or (self._todo[path].problem if path in self._todo else "")

    def _server_rows(self, found: DiscoveredFile) -> Iterable[WrapServerRow]:
        """Yield the servers of a file that was gone through."""
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
            state="wrapped" if is_written else stands.state,
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
    """Return what there is to say of a server that root does not have yet."""
    own = draft.variables_by_key
    return NewServer(
        name=draft.server.name,
        definition=toml_of(draft.server),
        secrets=[key for key in draft.value_by_key if key not in own],
        from_variables={key: list(names) for key, names in own.items()},
        missing=list(draft.missing),
        notes=[note.replace("NAME", draft.server.name) for note in draft.notes],
    )
