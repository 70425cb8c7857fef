"""`mcpwrap tools diff`: show what is held back, or what a next version changes. Reads only."""

from collections.abc import Iterator

import click
from msgspec.structs import replace

from mcpwrap.cli.common.output import print_json
from mcpwrap.cli.tools.named_definitions import read_report, waiting
from mcpwrap.cli.tools.next_version import DiffCommand, next_difference
from mcpwrap.cli.tools.page import change_fields, print_changes
from mcpwrap.core.pins.definitions import DefinitionKey
from mcpwrap.core.pins.next_version import NextVersionDifference
from mcpwrap.core.pins.pin_question import HeldChanges
from mcpwrap.core.pins.pins_report import PinsReport
from mcpwrap.core.pins.typed_names import displayed_name
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.errors import EXIT_OK
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection
from mcpwrap.linux import tty


@click.command("diff", cls=DiffCommand)
@click.argument("name")
@click.argument("tools", metavar="[TOOL]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--with-secrets", is_flag=True, help="With --next: also the server's secrets, asked.")
def command(
    *,
    name: str,
    tools: tuple[str, ...],
    as_json: bool,
    with_secrets: bool,
    next_command: tuple[str, ...] | None,
) -> int:
    """Show what is held back of the server NAME, word by word: what is new comes first.

    Each line has a mark: `+` is new, `-` is gone, `!` is what the change introduces or what was
    found in it.

    With `--next`, which needs root, all behind it is the command of a next version of NAME. It is
    started once, under an account of its own, and compared with what is accepted.

    \b
    Example:  mcpwrap tools diff github
              sudo mcpwrap tools diff github --next npx -y @scope/server@1.3.0
    Exit status: 0, also if nothing is held back; 1 the gate refused, or the next version lists
    nothing; 2 there is no server NAME, or it has no such TOOL.
    """
    if next_command is None and with_secrets:
        raise click.UsageError("--with-secrets is for the command behind --next")
    if next_command is not None and tools:
        raise click.UsageError("a next version is shown whole: leave out TOOL")
    with ApprovalConnection(approvals.PATH) as connection:
        report = read_report(connection, name)
    if next_command is None:
        _print_held(report, tools, as_json=as_json)
    else:
        found = next_difference(report, next_command, with_secrets=with_secrets)
        _print_next(name, found, as_json=as_json)
    return EXIT_OK


def _print_held(report: PinsReport, tools: tuple[str, ...], *, as_json: bool) -> None:
    shown = replace(report, changes=replace(report.changes, changes=tuple(waiting(report, tools))))
    if as_json:
        print_json(_fields(shown))
    else:
        _show(shown)


def _print_next(name: str, found: NextVersionDifference, *, as_json: bool) -> None:
    if as_json:
        print_json(_next_fields(name, found))
    else:
        _show_next(name, found)


def _show(report: PinsReport) -> None:
    if not report.changes.changes:
        rejected = len(report.changes.rejected)
        tty.say(f"nothing of {report.server!r} is held back")
        if rejected:
            tty.say(f"{rejected} rejected: `mcpwrap tools list {report.server}` has the names")
        return
    print_changes(report.changes)
    tty.say()
    tty.say(f"sha256 {report.digest}")
    tty.say(f"`mcpwrap tools accept {report.server}` accepts it, `reject` refuses it for good")


def _show_next(name: str, found: NextVersionDifference) -> None:
    """Print the difference, and what to do with it: nothing of it is accepted in advance."""
    print_changes(replace(found.changes, more=0))
    if found.changes.more:  # no decision follows that would bring them
        tty.say(f"{found.changes.more} more differ, and are too long to be shown with these")
    for key in found.absent:
        tty.say(f"no longer listed: {displayed_name(key.kind, key.name)}")
    for key in found.rejected:
        tty.say(f"rejected before: {displayed_name(key.kind, key.name)}")
    if not (found.changes.changes or found.absent or found.rejected):
        tty.say("the next version lists what is accepted")
        return
    tty.say()
    tty.say(f"nothing was changed; once {name!r} has this version, what differs is held back")


def _next_fields(name: str, found: NextVersionDifference) -> Json:
    return {
        "server": name,
        **_change_fields(found.changes),
        "absent": list(_keys(found.absent)),
        "rejected": list(_keys(found.rejected)),
    }


def _keys(keys: tuple[DefinitionKey, ...]) -> Iterator[Json]:
    for key in keys:
        yield {"kind": key.kind, "name": key.name}


def _fields(report: PinsReport) -> Json:
    return {
        "server": report.server,
        "question": report.question,
        "digest": report.digest,
        **_change_fields(report.changes),
    }


def _change_fields(changes: HeldChanges) -> dict[str, Json]:
    return {
        "version_before": changes.version_before,
        "version_after": changes.version_after,
        "more": changes.more,
        "changes": [change_fields(one) for one in changes.changes],
    }
