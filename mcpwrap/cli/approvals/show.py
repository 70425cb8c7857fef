"""`mcpwrap approvals show`: show one pending request in full. Reads only."""

import click
import msgspec

from mcpwrap.cli.approvals.text import PIPE_WIDTH, agent, page, pieces
from mcpwrap.cli.approvals.user_option import user_option
from mcpwrap.cli.common.output import print_json
from mcpwrap.core.approval.views.rendering import difference, pretty
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.approval_socket import Pending
from mcpwrap.errors import EXIT_OK, UsageError
from mcpwrap.gate_client.approvals import Listing, QuestionDetails
from mcpwrap.gate_client.user_approvals import connect
from mcpwrap.linux import tty


@click.command("show")
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@user_option
def command(*, id_: str | None, as_json: bool) -> int:
    """Show one pending request in full, and its differences from the last approved call.

    ID may be abbreviated to its first characters, and omitted if only one request is pending.

    \b
    Example:  mcpwrap approvals show 7f3a
    Exit status: 0; 1 the gate does not answer; 2 there is no such request, or more than one.
    """
    pending, seen = look(id_)
    if as_json:
        print_json(_fields(pending, seen))
    else:
        show(pending, seen)
    return EXIT_OK


def look(start: str | None) -> tuple[Pending, QuestionDetails]:
    """Return the pending request whose ID begins with `start`, with its document."""
    with connect() as connection:
        pending = chosen(connection.listing(), start)
        return pending, connection.show(pending.id)


def chosen(listing: Listing, start: str | None) -> Pending:
    """Return the one request whose ID begins with `start`; without it, the only request.

    Raises:
        UsageError: there is no such request, or more than one.
    """
    found = [one for one in listing.pending if one.id.startswith(start or "")]
    exact = [one for one in found if one.id == start]
    match exact or found:
        case [one]:
            return one
        case []:
            raise UsageError(
                f"no pending request has the ID {start!r}" if start else "no request is pending",
                where="mcpwrap approvals",
                fix="`mcpwrap approvals list` shows the pending requests",
                code="E-APPROVAL-NO-REQUEST",
            )
        case several:
            begin = f" with an ID that begins {start!r}" if start else ""
            raise UsageError(
                f"{len(several)} requests{begin} are pending",
                where="mcpwrap approvals",
                fix=f"name one: {', '.join(one.id for one in several[:10])}",
                code="E-APPROVAL-AMBIGUOUS-ID",
            )


def show(pending: Pending, seen: QuestionDetails) -> None:
    """Print the page of one request."""
    lines = pieces(page(pending, seen), tty.columns() or PIPE_WIDTH)
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
