"""`mcpwrap wrap`: propose the servers in agents' files to root, and rewrite the files.

Entries are compared with the applied state: servers, names, secrets without a value.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from types import MappingProxyType

import click

from mcpwrap.cli.agents.clients import NO_FILES
from mcpwrap.cli.agents.diff_view import agreed
from mcpwrap.cli.agents.discovery import DiscoveredFile, FileOwner, file_owner, found, known
from mcpwrap.cli.agents.wrap import hub_entry, proxied_list, select_files
from mcpwrap.cli.agents.wrap import proposal as wrap_proposal
from mcpwrap.cli.agents.wrap.decide import EntryDecider
from mcpwrap.cli.agents.wrap.decision import AppliedState, Egress, EntryLocation, WrapDecisions
from mcpwrap.cli.agents.wrap.edits import FileChange, changes, write
from mcpwrap.cli.agents.wrap.json_reporter import JsonReporter
from mcpwrap.cli.agents.wrap.proxied_list import ProxiedList
from mcpwrap.cli.agents.wrap.text_reporter import NEXT_STEPS_OF_RUN, Reporter, TextReporter
from mcpwrap.cli.agents.wrap.unprivileged import RunDecider, RunNames
from mcpwrap.cli.common.root_handoff import handoff_of
from mcpwrap.config import value_parsers
from mcpwrap.config.agent_files.known_agents import BY_ID
from mcpwrap.config.model import Config, Destination, Group, Hub, Server
from mcpwrap.config.parse import parse
from mcpwrap.core import names
from mcpwrap.core.wire.secret_index import SecretIndex
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, McpwrapError, UsageError
from mcpwrap.linux import accounts
from mcpwrap.linux.os_release import distribution
from mcpwrap.machine import observer, package_sources, secret_index_file
from mcpwrap.machine.agent_files import own_program

_WHERE = "mcpwrap wrap"


@click.command("wrap", epilog=f"A CLIENT is one of {', '.join(sorted(BY_ID))}.")
@click.argument("clients", nargs=-1, type=click.Choice(sorted(BY_ID)), metavar="[CLIENT]...")
@click.option("--all", "is_all", is_flag=True, help="Every agent that is found.")
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Only this file; may be repeated.",
)
@click.option(
    "--sha256", "approved", multiple=True, help="SHA-256 of a project's file that you have read."
)
@click.option(
    "--egress", multiple=True, metavar="[NAME=]HOST", help="Host that new servers may reach."
)
@click.option(
    "--hub", default="", metavar="NAME", help="Make one hub of all servers, and name it so."
)
@click.option(
    "--unprivileged", is_flag=True, help="Write `mcpwrap run` lines: no root, no package."
)
@click.option("--dry-run", is_flag=True, help="Show the changes, and make none.")
@click.option("--yes", is_flag=True, help="Do not ask here; root is still asked.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; needs --dry-run or --yes.")
@click.pass_context
def command(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    *,
    clients: tuple[str, ...],
    is_all: bool,
    files: tuple[Path, ...],
    approved: tuple[str, ...],
    egress: tuple[str, ...],
    hub: str,
    unprivileged: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Wrap the servers in agents' files: each gets an account of its own, behind the gate.

    \b
    Example:  mcpwrap wrap claude-code --egress github=api.github.com
    Shows each change first. New servers are proposed to root: `sudo mcpwrap accept` shows them and
    asks. Secrets are removed from the file and sealed. `mcpwrap unwrap` restores the file.
    --egress NAME=HOST is for the entry NAME, --egress HOST for every new server.
    --hub NAME makes one hub of all servers in one list, and replaces their entries by the hub's.
    --file FILE can also be a list of proxied servers, which become one hub.
    --unprivileged asks for no root: `mcpwrap run` starts each server, confined under your account.
    Secrets stay in the file then.
    Exit status: 0 all are wrapped, 1 some are not, with the reasons, 2 wrong usage.
    """
    if as_json and not (dry_run or yes):
        raise UsageError(
            "needs `--dry-run` or `--yes`, as a program that reads JSON cannot be asked;"
            " nothing was changed",
            where="--json",
            fix="add `--dry-run` to see the changes, or `--yes` to make them",
            code="E-WRAP-JSON-CONFIRM",
        )
    who = _person(context.obj or {})
    if unprivileged:
        _expect_no_options_of_root(egress, hub)
        chosen = select_files.chosen(who, clients, files, is_all=is_all)
        return _wrap_unprivileged(
            who, chosen, approved, is_dry=dry_run, is_agreed=yes, as_json=as_json
        )
    proxied = _proxied(who, files, is_alone=not clients and not is_all)
    chosen = [proxied.found] if proxied else select_files.chosen(who, clients, files, is_all=is_all)
    reporter: Reporter = JsonReporter(who, chosen) if as_json else TextReporter()
    hosts = _destinations(egress, chosen)
    wrapping = (
        _ListWrapping(who, proxied, hub, hosts, reporter)
        if proxied
        else _Wrapping(who, chosen, approved, reporter, egress=hosts, hub=hub)
    )
    is_done = wrapping.wrap(is_dry=dry_run, is_agreed=yes)
    reporter.end()
    return EXIT_OK if is_done else EXIT_FAILED


def applied_state(who: FileOwner) -> AppliedState:
    """Return the servers, names and unset secrets of this machine, for this person.

    Raises:
        UsageError: the configuration of this machine is wrong.
    """
    config = parse(observer.config_files()) if observer.has_configuration() else Config({}, {})
    applied, settings = known(who), secret_index_file.read()
    servers = {n: one for n, one in config.servers.items() if _may_use(one, who)}
    return AppliedState(
        known=applied,
        servers=servers,
        taken=frozenset({*config.servers, *observer.registry().by_name}),
        sources=frozenset(package_sources.found(distribution())),
        unset={
            name: keys for name, one in servers.items() if (keys := _unset_secrets(one, settings))
        },
    )


class _Wrapping:
    """One run of `wrap`. The files are examined again after root has applied the new servers."""

    _command = "mcpwrap wrap"

    def __init__(  # noqa: PLR0913 - what the command line gives
        self,
        who: FileOwner,
        files: Sequence[DiscoveredFile],
        approved: Sequence[str],
        reporter: Reporter,
        *,
        egress: Egress,
        hub: str,
    ) -> None:
        self._who, self._egress, self._reporter, self._hub = who, egress, reporter, hub
        self._is_any, self._is_asked = bool(files), False
        self._ready, self._refused = select_files.readable(
            files, approved, known(who), self._command
        )

    def wrap(self, *, is_dry: bool, is_agreed: bool) -> bool:
        """Wrap the files, and return whether all is wrapped; if `is_dry`, whether it would be."""
        look, todo = self._look_at_all()
        self._reporter.planned(look, todo, self._refused)
        is_done = self._is_all(look, todo)
        if not todo:
            self._reporter.remark(self._nothing(is_done=is_done))
            return is_done
        if is_dry:
            return is_done
        if not _is_agreed(self._who, in_advance=is_agreed):
            self._reporter.remark("nothing was changed")
            return False
        if look.drafts:
            if not _accepted_by_root(self._who, look, self._reporter):
                return False
            self._is_asked = True
            before, (look, todo) = look, self._look_at_all(look.server_by_place())
            self._reporter.looked_again(before, look, todo)
            is_done = self._is_all(look, todo)
        return self._rewritten(todo) and is_done

    def _look_at_all(
        self, decided: Mapping[EntryLocation, str] = MappingProxyType({})
    ) -> tuple[WrapDecisions, list[FileChange]]:
        """Return the decisions and the changes. With `decided`, root was asked already."""
        have = applied_state(self._who)
        look = EntryDecider(self._who, have, self._egress, decided).through(self._ready)
        if self._is_asked:
            look = look.without_drafts()
        return look, self._joined(look, have) if self._hub else changes(look)

    def _joined(self, look: WrapDecisions, have: AppliedState) -> list[FileChange]:
        """Return the change by which one entry of a hub replaces those of its members."""
        joined = hub_entry.joined_list(self._ready, look, have)
        if joined is None:
            return []
        if self._is_asked:
            known = have.servers.get(self._hub)
            members = known.runs.members if known and isinstance(known.runs, Hub) else ()
            joined = joined.of_hub({member.name for member in members})
            if not joined.server_by_entry:
                return []
        else:
            members_now = hub_entry.members_for(joined.servers())
            hub_entry.with_hub(look, have, self._who.account, members_now, self._hub)
            look.notes.extend(hub_entry.permission_notes(joined, self._hub))
        return [hub_entry.joined_change(joined, self._hub, look)]

    def _is_all(self, look: WrapDecisions, todo: Sequence[FileChange]) -> bool:
        return not (look.skipped or self._refused or any(one.problem for one in todo))

    def _nothing(self, *, is_done: bool) -> str:
        if not self._is_any:
            return NO_FILES
        return "nothing to do" if is_done else "nothing else to do"

    def _rewritten(self, todo: Sequence[FileChange]) -> bool:
        """Rewrite each file, and return whether all were rewritten."""
        is_done = True
        for one in todo:
            if one.problem or not one.entries:
                is_done = False
                continue
            try:
                self._reporter.written(one, write(self._who, one))
            except McpwrapError as error:  # the other files can still be rewritten
                self._reporter.failed(one, error)
                is_done = False
        return is_done


class _RunWrapping(_Wrapping):
    """One run of `wrap --unprivileged`, which proposes nothing to root."""

    _command = "mcpwrap wrap --unprivileged"

    def _look_at_all(
        self, decided: Mapping[EntryLocation, str] = MappingProxyType({})
    ) -> tuple[WrapDecisions, list[FileChange]]:
        program = own_program.expect_lasting(sys.argv[0], self._who.uid)
        names = RunNames([*found(self._who), *self._ready])
        look = RunDecider(self._who, known(self._who), program, names).through(self._ready)
        return look, changes(look)


def _wrap_unprivileged(
    who: FileOwner,
    chosen: Sequence[DiscoveredFile],
    approved: Sequence[str],
    *,
    as_json: bool,
    **how: bool,
) -> int:
    reporter: Reporter = (
        JsonReporter(who, chosen, "run") if as_json else TextReporter(NEXT_STEPS_OF_RUN)
    )
    is_done = _RunWrapping(who, chosen, approved, reporter, egress={}, hub="").wrap(**how)
    reporter.end()
    return EXIT_OK if is_done else EXIT_FAILED


def _expect_no_options_of_root(egress: Sequence[str], hub: str) -> None:
    for option, is_given in (("--egress", bool(egress)), ("--hub", bool(hub))):
        if is_given:
            raise UsageError(
                "needs root, and `--unprivileged` asks for none; nothing was changed",
                where=option,
                fix="leave out one of the two options",
                code="E-WRAP-RUN-OPTION",
            )


class _ListWrapping:
    """One run of `wrap` for a list of proxied servers: one hub of all of them, or nothing."""

    def __init__(
        self, who: FileOwner, proxied: ProxiedList, hub: str, egress: Egress, reporter: Reporter
    ) -> None:
        self._who, self._proxied, self._hub = who, proxied, hub
        self._egress, self._reporter = egress, reporter

    def wrap(self, *, is_dry: bool, is_agreed: bool) -> bool:
        """Propose the servers and their hub, and return whether root has them, or could."""
        look, hub = self._look({})
        self._reporter.planned(look, [], [])
        if not hub:
            self._reporter.remark("nothing was changed: the hub needs each server of the list")
            return False
        if look.drafts:
            if is_dry:
                return True
            if not _is_agreed(self._who, in_advance=is_agreed):
                self._reporter.remark("nothing was changed")
                return False
            if not _accepted_by_root(self._who, look, self._reporter):
                return False
            before, (look, hub) = look, self._look(look.server_by_place())
            self._reporter.looked_again(before, look, [])
        if hub:
            self._reporter.remark(_how_to_use(hub, self._proxied.found.path))
        return bool(hub)

    def _look(self, decided: Mapping[EntryLocation, str]) -> tuple[WrapDecisions, str]:
        have = applied_state(self._who)
        decider = EntryDecider(self._who, have, self._egress, decided)
        account = self._who.account
        return proxied_list.decisions(decider, have, account, self._proxied, self._hub)


def _how_to_use(hub: str, path: Path) -> str:
    convert = f"mcpwrap convert {quote(str(path))} --hub {hub} --client CLIENT"
    return f"agents use them as one server, `mcpwrap-connect {hub}`: `{convert}` prints its entry"


def _is_agreed(who: FileOwner, *, in_advance: bool) -> bool:
    """Ask the person, by `mcpwrap init` if that has the terminal."""
    if not in_advance and (handoff := handoff_of(who.environ)):
        return handoff.is_confirmed()
    return agreed("Do this?", is_agreed=in_advance)


def _accepted_by_root(who: FileOwner, look: WrapDecisions, reporter: Reporter) -> bool:
    """Propose the new servers, and return whether root has accepted them."""
    proposal = wrap_proposal.proposal_of(who, look)
    wrap_proposal.write(proposal)
    if not wrap_proposal.can_ask(who):
        reporter.cannot_ask(proposal)
        return False
    reporter.asks(proposal)
    is_yes = wrap_proposal.ask_root(who, proposal, look, reporter.roots_output)
    reporter.answered(is_yes=is_yes)
    return is_yes


def _proxied(who: FileOwner, files: Sequence[Path], *, is_alone: bool) -> ProxiedList | None:
    """Return the list of proxied servers that `--file` names; None if it names agents' files."""
    lists = [found for path in files if (found := proxied_list.read_list(who.folder, path))]
    if lists and not (is_alone and len(files) == 1):
        raise UsageError(
            "is a list of proxied servers, which becomes one hub; nothing was changed",
            where=str(lists[0].found.path),
            fix="give it alone: `mcpwrap wrap --file FILE`",
            code="E-WRAP-LIST-ALONE",
        )
    return lists[0] if lists else None


def _may_use(server: Server, who: FileOwner) -> bool:
    groups = [name[1:] for name in server.agents if name.startswith("@")]
    return who.account in server.agents or any(
        who.uid in accounts.uids_in(group) for group in groups
    )


def _unset_secrets(server: Server, settings: SecretIndex) -> tuple[str, ...]:
    return tuple(
        key
        for key in sorted(server.secrets() - {names.OAUTH_KEY})
        if (found := settings.of(server.name, key)) is None or not found.is_set
    )


def _person(environ: dict[str, str]) -> FileOwner:
    if os.geteuid() == 0:
        raise UsageError(
            "cannot wrap the agents of root; nothing was changed",
            where=_WHERE,
            fix="run it under the account that runs the agents; it calls sudo where root is needed",
            code="E-WRAP-AS-ROOT",
        )
    return file_owner(os.geteuid(), Path.cwd(), environ)


def _destinations(hosts: Sequence[str], files: Sequence[DiscoveredFile]) -> Egress:
    """Return the hosts by the name of an entry; those for every new server are at ""."""
    known = {"", *(listed.entry.name for one in files for listed in one.listed)}
    found: dict[str, tuple[Destination | Group, ...]] = {}
    for name, _, host in (one.rpartition("=") for one in hosts):
        if name not in known:
            raise UsageError(
                f"these files have no server {name!a}",
                where="--egress",
                fix="write the name of an entry: `mcpwrap clients` lists them",
                code="E-WRAP-NO-ENTRY",
            )
        try:
            found[name] = (*found.get(name, ()), value_parsers.egress(host))
        except value_parsers.BadValueError as error:
            raise UsageError(
                error.problem, where="--egress", fix=error.fix, code=error.code
            ) from error
    return found
