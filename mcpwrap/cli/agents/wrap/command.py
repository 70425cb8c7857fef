"""`mcpwrap wrap`: make servers in agents' files servers of ours, with root's consent.

What it compares them with is the applied state: servers, names, secrets without a value.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import click

from mcpwrap.cli.agents.diff_view import agreed
from mcpwrap.cli.agents.discovery import DiscoveredFile, FileOwner, file_owner, known
from mcpwrap.cli.agents.wrap import proposal as wrap_proposal
from mcpwrap.cli.agents.wrap import select_files
from mcpwrap.cli.agents.wrap.decide import EntryDecider
from mcpwrap.cli.agents.wrap.decision import AppliedState, Egress, EntryLocation, WrapDecisions
from mcpwrap.cli.agents.wrap.edits import FileChange, changes, write
from mcpwrap.cli.agents.wrap.json_reporter import JsonReporter
from mcpwrap.cli.agents.wrap.text_reporter import Reporter, TextReporter
from mcpwrap.config import value_parsers
from mcpwrap.config.agent_files.known_agents import BY_ID
from mcpwrap.config.model import Config, Destination, Group, Server
from mcpwrap.config.parse import parse
from mcpwrap.core import names
from mcpwrap.core.wire.secret_index import SecretIndex
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, McpwrapError, UsageError
from mcpwrap.linux import accounts
from mcpwrap.machine import observer, package_sources, secret_index_file

_WHERE = "mcpwrap wrap"


@click.command("wrap", epilog=f"A CLIENT is one of {', '.join(sorted(BY_ID))}.")
@click.argument("clients", nargs=-1, type=click.Choice(sorted(BY_ID)), metavar="[CLIENT]...")
@click.option("--all", "is_all", is_flag=True, help="Every agent that is found.")
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="This file.",
)
@click.option("--sha256", "approved", multiple=True, help="A project's file that you have read.")
@click.option(
    "--egress", multiple=True, metavar="[NAME=]HOST", help="A host that new servers may reach."
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--yes", is_flag=True, help="Do not ask here. Root is asked all the same.")
@click.option("--json", "as_json", is_flag=True, help="Print for machines; with one of these two.")
@click.pass_context
def command(  # noqa: PLR0913 - one for each option
    context: click.Context,
    *,
    clients: tuple[str, ...],
    is_all: bool,
    files: tuple[Path, ...],
    approved: tuple[str, ...],
    egress: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Make every server in agents' files one of ours: an account of its own, behind the gate.

    \b
    Example:  mcpwrap wrap claude-code --egress github=api.github.com
    Shows each change first. New servers are proposed to root, who sees them and is asked by
    `sudo mcpwrap accept`; secrets leave the file and are sealed. `mcpwrap unwrap` undoes it.
    Exit status: 0 all are wrapped, 1 some are not, and it says why, 2 wrong usage.
    """
    if as_json and not (dry_run or yes):
        raise UsageError(
            "whoever reads JSON cannot be asked; nothing was changed",
            where="--json",
            fix="look with `--dry-run`, or say `--yes`",
        )
    who = _person(context.obj or {})
    of_agents = select_files.chosen(who, clients, files, is_all=is_all)
    telling: Reporter = JsonReporter(who, of_agents) if as_json else TextReporter()
    wrapping = _Wrapping(who, of_agents, approved, _destinations(egress, of_agents), telling)
    is_done = wrapping.wrap(is_dry=dry_run, is_agreed=yes)
    telling.end()
    return EXIT_OK if is_done else EXIT_FAILED


def applied_state(who: FileOwner) -> AppliedState:
    """Return what there is for whoever wraps.

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
        sources=frozenset(package_sources.found()),
        unset={
            name: keys for name, one in servers.items() if (keys := _unset_secrets(one, settings))
        },
    )


class _Wrapping:
    """Files to wrap, which are looked at once more when root has done its part."""

    def __init__(
        self,
        who: FileOwner,
        files: Sequence[DiscoveredFile],
        approved: Sequence[str],
        egress: Egress,
        telling: Reporter,
    ) -> None:
        self._who, self._egress, self._telling = who, egress, telling
        self._is_any = bool(files)
        self._ready, self._refused = select_files.readable(files, approved, known(who))

    def wrap(self, *, is_dry: bool, is_agreed: bool) -> bool:
        """Do all of it, and say whether nothing is left; if it `is_dry`, whether nothing would."""
        look = self._look()
        todo = changes(look)
        self._telling.planned(look, todo, self._refused)
        is_done = self._is_all(look, todo)
        if not look.rewrites:
            self._telling.remark(self._nothing(is_done=is_done))
            return is_done
        if is_dry:
            return is_done
        if not agreed("Do this?", is_agreed=is_agreed):
            self._telling.remark("nothing was changed")
            return False
        if look.drafts:
            if not self._handed_over(look):
                return False
            before, look = look, self._look(look.server_by_place())
            todo = changes(look)
            self._telling.looked_again(before, look, todo)
            is_done = self._is_all(look, todo)
        return self._written(todo) and is_done

    def _look(self, decided: Mapping[EntryLocation, str] = MappingProxyType({})) -> WrapDecisions:
        have = applied_state(self._who)
        found = EntryDecider(self._who, have, self._egress, decided).through(self._ready)
        return found.without_drafts() if decided else found

    def _is_all(self, look: WrapDecisions, todo: Sequence[FileChange]) -> bool:
        return not (look.skipped or self._refused or any(one.problem for one in todo))

    def _nothing(self, *, is_done: bool) -> str:
        if not self._is_any:
            return "no file of an agent that mcpwrap knows: `man mcpwrap` lists them"
        return "nothing to do" if is_done else "nothing else to do"

    def _handed_over(self, look: WrapDecisions) -> bool:
        """Propose the new servers, and say whether root has taken them."""
        proposal = wrap_proposal.proposal_of(self._who, look)
        wrap_proposal.write(proposal)
        if not wrap_proposal.has_sudo():
            self._telling.cannot_ask(proposal)
            return False
        self._telling.asks(proposal)
        is_yes = wrap_proposal.ask_root(proposal, look, self._telling.roots_output)
        self._telling.answered(is_yes=is_yes)
        return is_yes

    def _written(self, todo: Sequence[FileChange]) -> bool:
        """Rewrite each file, and say whether that went well."""
        is_done = True
        for one in todo:
            if one.problem or not one.entries:
                is_done = False
                continue
            try:
                self._telling.written(one, write(self._who, one))
            except McpwrapError as error:  # the others are none the worse for it
                self._telling.failed(one, error)
                is_done = False
        return is_done


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
            "root has no agents; nothing was changed",
            where=_WHERE,
            fix="run it as the person whose agents they are; it asks root for what root must do",
        )
    return file_owner(os.geteuid(), Path.cwd(), environ)


def _destinations(hosts: Sequence[str], files: Sequence[DiscoveredFile]) -> Egress:
    """Return the hosts for each entry that is named."""
    known = {"", *(listed.entry.name for one in files for listed in one.listed)}
    found: dict[str, tuple[Destination | Group, ...]] = {}
    for name, _, host in (one.rpartition("=") for one in hosts):
        if name not in known:
            fix = "write the name that it has there: `mcpwrap clients` shows them"
            raise UsageError(f"no server {name!a} is in these files", where="--egress", fix=fix)
        try:
            found[name] = (*found.get(name, ()), value_parsers.egress(host))
        except value_parsers.BadValueError as error:
            raise UsageError(error.problem, where="--egress", fix=error.fix) from error
    return found
