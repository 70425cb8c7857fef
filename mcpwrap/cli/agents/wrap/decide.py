"""Decision of `mcpwrap wrap` for each entry: its server, or why it stays as it is."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from mcpwrap.cli.agents.discovery import DiscoveredFile, FileOwner
from mcpwrap.cli.agents.wrap import entry_context
from mcpwrap.cli.agents.wrap.decision import (
    AppliedState,
    Egress,
    EntryLocation,
    EntryRewrite,
    SkippedEntry,
    WrapDecisions,
)
from mcpwrap.config.agent_files.parsed_file import ListedServer, ParsedFile
from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport
from mcpwrap.config.agent_files.wrap_status import wrap_status
from mcpwrap.config.migration import entry, projects
from mcpwrap.config.migration.draft import Draft, EntryContext, MigrationError
from mcpwrap.config.model import Destination, Group, Local, Runs
from mcpwrap.core.names import server_name_for
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.executables.look import ExecutableScan
from mcpwrap.linux.os_release import distribution
from mcpwrap.machine.agent_files.files import check_replaceable
from mcpwrap.machine.program_check import changeable


class ReplaceChecks:
    """Checks that files can be rewritten, each done once."""

    def __init__(self) -> None:
        self._why_not_by_path: dict[Path, str] = {}

    def why_not(self, found: DiscoveredFile) -> str:
        """Return why a file cannot be rewritten, or ""."""
        if found.path not in self._why_not_by_path:
            try:
                check_replaceable(found.path, found.content)
                self._why_not_by_path[found.path] = ""
            except McpwrapError as error:
                self._why_not_by_path[found.path] = error.named_problem
        return self._why_not_by_path[found.path]


class EntryDecider:
    """Decides the entries in order; equal entries become one server.

    `decided` has the servers that were shown before root had all of them.
    """

    def __init__(
        self,
        who: FileOwner,
        machine: AppliedState,
        egress: Egress,
        decided: Mapping[EntryLocation, str],
    ) -> None:
        self._decided = decided
        self._who = who
        self._machine = machine
        self._egress = egress
        self._values_by_server: dict[str, Mapping[str, str]] = {}
        self._files = ReplaceChecks()
        self._look = WrapDecisions()
        self._executables = ExecutableScan()

    def through(self, files: Iterable[DiscoveredFile]) -> WrapDecisions:
        """Return the decisions for all entries that are not wrapped."""
        for found in files:
            if found.opened is not None:
                for listed in found.listed:
                    self._entry(found, found.opened, listed)
        return self._look

    def server_of_program(
        self, found: DiscoveredFile, listed: ListedServer, others: Collection[str]
    ) -> str:
        """Return the server of an entry of a list of proxied servers, existing or new.

        It is none of `others`, the servers of the list's other entries.

        Raises:
            MigrationError: the entry cannot be converted, or root has to do something first.
        """
        if not isinstance(listed.launch, StdioTransport):
            raise MigrationError("it is not a program", code="E-PROXIED-ENTRY")
        context = entry_context.around(self._who, found, listed)
        launch = entry.literal_launch(listed.launch, context)
        name, _ = self._server_for(found, listed, launch, context)
        if name in others:
            raise MigrationError(
                f"it is the same server as another entry: {name}", code="E-PROXIED-TWICE"
            )
        return name

    def _entry(self, found: DiscoveredFile, opened: ParsedFile, listed: ListedServer) -> None:
        stands = wrap_status(listed.launch, self._machine.known)
        self._look.status_by_location[found.path, listed.entry.path] = stands
        if stands.state == "wrapped":
            return
        if stands.state == "drifted":
            if not stands.server:
                self._leave(found, listed, stands.why)
                return
            taken = self._machine.known.inherits_by_server.get(stands.server, ())
            self._look.rewrites.append(_rewrite_of(found, opened, listed, stands.server, taken))
            return
        if why := self._files.why_not(found):  # root is not asked for a useless server
            self._leave(found, listed, why)
            return
        try:
            self._look.rewrites.append(self._raw(found, opened, listed))
        except MigrationError as error:
            self._leave(found, listed, str(error))

    def _leave(self, found: DiscoveredFile, listed: ListedServer, why: str) -> None:
        self._look.skipped.append(SkippedEntry(found, listed, why))

    def _raw(self, found: DiscoveredFile, opened: ParsedFile, listed: ListedServer) -> EntryRewrite:
        """Return the rewrite of a raw entry; its server is an existing or a new one."""
        context = entry_context.around(self._who, found, listed)
        context = entry_context.with_projects(context, found, listed, self._who.uid)
        launch = entry.launch_of(listed, context)
        name, runs = self._server_for(found, listed, launch, context)
        taken = (*runs.inherits, *runs.inherits_any) if isinstance(runs, Local) else ()
        is_remote = isinstance(launch, HttpTransport)
        return replace(_rewrite_of(found, opened, listed, name, taken), is_remote=is_remote)

    def _server_for(
        self,
        found: DiscoveredFile,
        listed: ListedServer,
        launch: StdioTransport | HttpTransport,
        context: EntryContext,
    ) -> tuple[str, Runs]:
        """Return the server of an entry: its name, and what it runs."""
        if isinstance(launch, StdioTransport):
            context = entry_context.seen(launch, context, self._who)
        draft = self._allowed(entry.draft(listed, launch, context, self._egress_of(listed)))
        entry.expect_registries(draft.server, self._machine.sources, distribution())
        entry_context.expect_no_links(draft)
        wanted = self._decided.get((found.path, listed.entry.path), "")
        name = self._existing(draft, wanted)
        if name and draft.value_by_key:
            keys = ", ".join(draft.value_by_key)
            self._look.notes.append(
                f"{listed.entry.name!a} of {found.path} leads to {name}, which exists already: it"
                f" uses the {keys} that root set for it, and not the value in this file"
            )
        if name and (unseen := projects.unseen(self._machine.servers[name], draft.server)):
            listing = ", ".join(f'"{path}:rw"' for path in unseen)
            self._look.notes.append(
                f"{listed.entry.name!a} of {found.path} leads to {name}, which exists already and"
                f" sees no project in {', '.join(unseen)}: root can add `projects = [{listing}]`"
            )
        name = name or self._new(listed, draft)
        self._look.secrets += [(name, key, value) for key, value in draft.value_by_key.items()]
        if why := self._why_not_yet(name):
            raise MigrationError(why)
        return name, draft.server.runs

    def _allowed(self, draft: Draft) -> Draft:
        """Add `writable_command` and a note for root if other accounts can change the program.

        Root checks itself what is hidden from this account.
        """
        found = changeable(draft.server, self._executables)
        if found is None or found.flaw.is_hidden:
            return draft
        note = f"{found}: that account decides what NAME runs, and root is asked to allow it"
        return replace(
            draft,
            server=replace(draft.server, writable_command=True),
            notes=(*draft.notes, note),
        )

    def _egress_of(self, listed: ListedServer) -> tuple[Destination | Group, ...]:
        """Return the hosts of `--egress` for all entries and for those of this name."""
        return (*self._egress.get("", ()), *self._egress.get(listed.entry.name, ()))

    def _existing(self, draft: Draft, wanted: str) -> str:
        """Return the name of an equal server of this machine; "" if there is no such server.

        Two servers can differ in secrets alone, which cannot be seen here: `wanted` comes first,
        and then those that see the same projects.
        """
        by_name = self._machine.servers

        def order(name: str) -> tuple[bool, bool, int, str]:
            is_blind = bool(projects.unseen(by_name[name], draft.server))
            return (name != wanted, is_blind, len(name), name)

        for name in sorted(by_name, key=order):
            server = by_name[name]
            if server.runs != draft.server.runs:
                continue
            if self._values_by_server.setdefault(name, draft.value_by_key) == draft.value_by_key:
                return name
        return ""

    def _new(self, listed: ListedServer, draft: Draft) -> str:
        for number, other in enumerate(self._look.drafts):
            same = replace(draft.server, name=other.server.name, projects=other.server.projects)
            if same == other.server and other.value_by_key == draft.value_by_key:
                self._look.drafts[number] = projects.merged(other, draft)
                return other.server.name
        taken = self._machine.taken | {one.server.name for one in self._look.drafts}
        name = server_name_for(listed.entry.name, taken)
        self._look.drafts.append(replace(draft, server=replace(draft.server, name=name)))
        return name

    def _why_not_yet(self, name: str) -> str:
        """Return what root has to do before an entry can lead to a configured server, or ""."""
        if name not in self._machine.servers:
            return ""
        if name not in self._machine.known.inherits_by_server:
            return (
                f"{name} is configured but not applied: `sudo mcpwrap apply` [E-WRAP-NOT-APPLIED]"
            )
        if unset := self._machine.unset.get(name):
            fix = f"`sudo mcpwrap secret set {name} {unset[0]}`"
            return f"a secret has no value yet: {fix} [E-WRAP-SECRET-UNSET]"
        return ""


def _rewrite_of(
    found: DiscoveredFile,
    opened: ParsedFile,
    listed: ListedServer,
    server: str,
    taken: Collection[str],
) -> EntryRewrite:
    """Return the rewrite of an entry; the agent still passes the variables in `taken`."""
    launch = listed.launch
    own = launch.inherits if isinstance(launch, StdioTransport) else ()
    kept = tuple(name for name in own if name in taken)
    return EntryRewrite(found, opened, listed, server, isinstance(launch, HttpTransport), kept)
