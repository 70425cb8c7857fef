"""`mcpwrap approvals show`: show one pending request in full. Reads only."""

import click
import msgspec

from mcpwrap.cli.approvals.text import agent, page, pieces
from mcpwrap.cli.common.output import print_json
from mcpwrap.core.approval.rendering import difference, pretty
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.approval_socket import Pending
from mcpwrap.errors import EXIT_OK, UsageError
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection, Listing, QuestionDetails
from mcpwrap.linux import tty

_PIPE_WIDTH = 2**20  # where nothing is a terminal no line is folded


@click.command("show")
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print for machines.")
def command(*, id_: str | None, as_json: bool) -> int:
    """Show one question in full, and what differs from the last approved call of the tool.

    ID may be the beginning of one; where only one waits it may be left out.

    \b
    Example:  mcpwrap approvals show 7f3a
    Exit status: 0, or 2 if there is no such question, or it is not clear which.
    """
    pending, seen = look(id_)
    if as_json:
        print_json(_fields(pending, seen))
    else:
        show(pending, seen)
    return EXIT_OK


def look(start: str | None) -> tuple[Pending, QuestionDetails]:
    """Return what is meant by the beginning of an id, with its document."""
    with ApprovalConnection(approvals.PATH) as door:
        pending = chosen(door.listing(), start)
        return pending, door.show(pending.id)


def chosen(listing: Listing, start: str | None) -> Pending:
    """Return the one question whose id begins so; without, the only one.

    Raises:
        UsageError: there is none, or more than one.
    """
    found = [one for one in listing.pending if one.id.startswith(start or "")]
    exact = [one for one in found if one.id == start]
    match exact or found:
        case [one]:
            return one
        case []:
            what = f"nothing with the id {start!r} waits" if start else "nothing waits"
            fix = "`mcpwrap approvals list` shows what waits"
            raise UsageError(what, where="mcpwrap approvals", fix=fix)
        case several:
            what = f"{len(several)} are meant" if start else f"{len(several)} wait"
            raise UsageError(
                what,
                where="mcpwrap approvals",
                fix=f"name one: {', '.join(one.id for one in several[:10])}",
            )


def show(pending: Pending, seen: QuestionDetails) -> None:
    """Print it for people."""
    lines = pieces(page(pending, seen), tty.columns() or _PIPE_WIDTH)
    tty.say_lines(tty.styled(line.text, *line.styles) for line in lines)


def _fields(pending: Pending, seen: QuestionDetails) -> dict[str, Json]:
    diff = difference(seen.before, seen.question) if seen.before else []
    return {
        **msgspec.to_builtins(pending),
        "agent": agent(seen.question.agent_uid),
        "question": msgspec.to_builtins(seen.question),
        "before": msgspec.to_builtins(seen.before),
        "shown": pretty(seen.question),
        "difference": [line.sign + line.text for line in diff],
    }
