"""Showing what `mcpwrap wrap` would do: no secret is in it, and nothing that a terminal obeys."""

from collections.abc import Iterable, Sequence

import click

from mcpwrap.cli.approvals_text import one_line
from mcpwrap.cli.changes_shown import diff_of
from mcpwrap.cli.clients_found import Found
from mcpwrap.cli.wrap_change import NOT_YET, Changed
from mcpwrap.cli.wrap_decided import Left, Look
from mcpwrap.config.proposals.draft import Draft
from mcpwrap.config.proposals.entry import secrets_in
from mcpwrap.config.write import toml_of

_APART = """\
Of your home a server sees its `workspace` alone, and of your variables its `env`.
Its own home is empty.
"""


def everything(look: Look, todo: Sequence[Changed], refused: Sequence[tuple[Found, str]]) -> None:
    """Print it: files, new servers, secrets, and what is left as it is."""
    for one in todo:
        _file(one, look)
    if any(NOT_YET.encode() in one.new for one in todo):
        click.echo(f"{NOT_YET} stands for a URL of this machine, which root's part settles\n")
    if look.drafts:
        click.secho("new servers, which root is asked for:", bold=True)
    for draft in look.drafts:
        _draft(draft)
    if look.drafts:
        click.echo(_APART)
    for note in look.notes:
        click.secho(f"note: {one_line(note)}", fg="yellow", err=True)
    left(look.left)
    _refused(refused)


def _file(one: Changed, look: Look) -> None:
    if one.problem:
        click.echo(f"{one_line(str(one.path))}: {one_line(one.problem)}", err=True)
        return
    click.echo(diff_of(one.path, one.was, one.new, shown_as=_names(one, look)))
    for name in one.left_over:
        click.echo(f"note: {name} still stands in {one_line(str(one.path))}, elsewhere", err=True)


def _names(one: Changed, look: Look) -> dict[str, str]:
    """Return what is shown in place of each secret of a file, also of entries that are left."""
    files = [become.found for become in look.become if become.found.path == one.path]
    texts = {text: "<hidden>" for listed in files[0].listed for text in secrets_in(listed)}
    return texts | {value: f"<{key} of {server}>" for server, key, value in look.secrets}


def _draft(draft: Draft) -> None:
    name = draft.server.name
    click.echo(toml_of(draft.server))
    own = draft.variables_by_key
    if found := [key for key in draft.value_by_key if key not in own]:
        click.echo(f"  sealed by root, from the file: {', '.join(found)}")
    for key, variables in own.items():
        names = one_line(", ".join(variables))
        click.secho(f"  {key} is given the value of YOUR variable {names}: the file asks for it")
    for key in draft.missing:
        click.echo(f"  not in the file: `sudo mcpwrap secret set {name} {key}` afterwards")
    for note in draft.notes:
        click.echo(f"  {one_line(note.replace('NAME', name))}")
    click.echo()


def left(entries: Iterable[Left]) -> None:
    """Print which entries stay as they are, and why."""
    for one in entries:
        place = f"{one.found.agents[0].title}, {one_line(str(one.found.path))}"
        name = one_line(one.listed.entry.name)
        click.echo(f"left as it is: {name} ({place}): {one_line(one.why)}", err=True)


def _refused(refused: Sequence[tuple[Found, str]]) -> None:
    for found, why in refused:
        path = one_line(str(found.path))
        lines = [one_line(line) for line in why.splitlines()]
        click.echo(f"left as it is: {path}: " + "\n".join(lines), err=True)
