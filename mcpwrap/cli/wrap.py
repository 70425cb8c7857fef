"""`mcpwrap wrap`: the servers in agents' files become servers of ours, with root's consent."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import click

from mcpwrap.cli import wrap_files, wrap_proposal, wrap_shown
from mcpwrap.cli.approvals_text import one_line
from mcpwrap.cli.changes_shown import agreed
from mcpwrap.cli.clients_found import Asker, Found, asker
from mcpwrap.cli.wrap_change import Changed, changes, write
from mcpwrap.cli.wrap_decided import Egress, Look, Place
from mcpwrap.cli.wrap_look import Looking
from mcpwrap.cli.wrap_machine import machine
from mcpwrap.config import values
from mcpwrap.config.agent_files.table import BY_ID
from mcpwrap.config.model import Destination, Group
from mcpwrap.core.sanitise import visible
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, McpwrapError, UsageError

_WHERE = "mcpwrap wrap"
_NEXT = """\
Agents read their files when they start: restart those that run. Then, where one does not work:
  sudo mcpwrap doctor                  # tries each server as its agent does
  sudo mcpwrap egress NAME --suggest   # hosts that it asked for and was refused
What it may is in /etc/mcpwrap/conf.d/NAME.toml; after a change, `sudo mcpwrap apply`."""


@click.command("wrap")
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
) -> int:
    """Make every server in agents' files one of ours: an account of its own, behind the gate.

    \b
    Example:  mcpwrap wrap claude-code --egress github=api.github.com
    Shows each change first. New servers are proposed to root, who sees them and is asked by
    `sudo mcpwrap accept`; secrets leave the file and are sealed. `mcpwrap unwrap` undoes it.
    Exit status: 0 all are wrapped, 1 some are not, and it says why, 2 wrong usage.
    """
    who = _person(context.obj or {})
    of_agents = wrap_files.chosen(who, clients, files, is_all=is_all)
    wrapping = _Wrapping(who, of_agents, approved, _destinations(egress, of_agents))
    look = wrapping.look()
    todo = changes(look)
    wrap_shown.everything(look, todo, wrapping.refused)
    is_done = not (look.left or wrapping.refused or any(one.problem for one in todo))
    if not look.become:
        click.echo(_nothing(wrapping, is_done=is_done))
        return EXIT_OK if is_done else EXIT_FAILED
    if dry_run:
        return EXIT_OK if is_done else EXIT_FAILED
    if not agreed("Do this?", is_agreed=yes):
        click.echo("nothing was changed")
        return EXIT_FAILED
    if look.drafts:
        if not wrap_proposal.hand_over(who, look):
            return EXIT_FAILED
        before, look = look, wrapping.look(look.server_by_place())
        wrap_shown.left([one for one in look.left if one not in before.left])
        is_done = is_done and not look.left
        todo = changes(look)
    return _written(who, todo, is_done=is_done)


def _nothing(wrapping: "_Wrapping", *, is_done: bool) -> str:
    if not wrapping.is_any:
        return "no file of an agent that mcpwrap knows: `man mcpwrap` lists them"
    return "nothing to do" if is_done else "nothing else to do"


class _Wrapping:
    """The files, which are looked at once more when root has done its part."""

    def __init__(
        self, who: Asker, files: Sequence[Found], approved: Sequence[str], egress: Egress
    ) -> None:
        self._who, self._egress = who, egress
        self.is_any = bool(files)
        self._ready, self.refused = wrap_files.readable(files, approved)

    def look(self, decided: Mapping[Place, str] = MappingProxyType({})) -> Look:
        have = machine(self._who)
        found = Looking(self._who, have, self._egress, decided).through(self._ready)
        return found.without_drafts() if decided else found


def _person(environ: dict[str, str]) -> Asker:
    if os.geteuid() == 0:
        raise UsageError(
            "root has no agents; nothing was changed",
            where=_WHERE,
            fix="run it as the person whose agents they are; it asks root for what root must do",
        )
    return asker(os.geteuid(), Path.cwd(), environ)


def _destinations(hosts: Sequence[str], files: Sequence[Found]) -> Egress:
    """Return the hosts for each entry that is named."""
    known = {"", *(listed.entry.name for one in files for listed in one.listed)}
    found: dict[str, tuple[Destination | Group, ...]] = {}
    for name, _, host in (one.rpartition("=") for one in hosts):
        if name not in known:
            fix = "write the name that it has there: `mcpwrap clients` shows them"
            raise UsageError(f"no server {name!a} is in these files", where="--egress", fix=fix)
        try:
            found[name] = (*found.get(name, ()), values.egress(host))
        except values.BadValueError as error:
            raise UsageError(error.problem, where="--egress", fix=error.fix) from error
    return found


def _written(who: Asker, todo: Sequence[Changed], *, is_done: bool) -> int:
    for one in todo:
        if one.problem or not one.entries:
            is_done = False
            continue
        try:
            backup = write(who, one)
        except McpwrapError as error:  # the others are none the worse for it
            click.echo(f"mcpwrap: {visible(str(error))}", err=True)
            is_done = False
            continue
        click.echo(one_line(f"{one.path}: {one.count()}; as it was: {backup}"))
    click.echo(_NEXT)
    return EXIT_OK if is_done else EXIT_FAILED
