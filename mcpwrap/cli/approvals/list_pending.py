"""`mcpwrap approvals list`: show pending approvals and paused agents. Reads only."""

import time

import click
import msgspec

from mcpwrap.cli.approvals.text import agent, cell, pause, span, tool_of
from mcpwrap.cli.common.output import print_json, print_table
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.approval_socket import Pending
from mcpwrap.errors import EXIT_OK
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection, Listing
from mcpwrap.linux import tty

COLUMNS = ["ID", "AGE", "AGENT", "SERVER", "TOOL", "RULE", "EXPIRES", "ASKED", "YOU"]
_YOU = {"yes": "may answer", "proof": "with proof", "no": "may not"}


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, as_json: bool) -> int:
    """List pending requests and paused agents.

    \b
    Example:  mcpwrap approvals list --json | jq -r '.pending[].id'
    """
    with ApprovalConnection(approvals.PATH) as connection:
        listing = connection.listing()
    if as_json:
        print_json(fields_of(listing))
    else:
        show(listing)
    return EXIT_OK


def show(listing: Listing) -> None:
    """Print a table of the pending requests, and a line for each paused agent."""
    if listing.pending:
        now = time.time()
        print_table(COLUMNS, [cells(one, now) for one in listing.pending])
    else:
        tty.say("nothing waits for approval")
    for one in listing.paused:
        tty.say(pause(one))


def cells(one: Pending, now: float) -> list[str]:
    """Return the cells of one row."""
    return [
        cell(one.id),
        span(now - one.asked_at),
        cell(agent(one.agent_uid)),
        cell(one.server),
        cell(tool_of(one)),
        cell(one.rule),
        span(one.expires_at - now) if one.expires_at else "never",
        str(one.times),
        _YOU[one.may],
    ]


def fields_of(listing: Listing) -> Json:
    """Return the output of `--json`: the gate's fields, with the names of the agents.

    It must be printed as ASCII JSON: it has texts that agents wrote.
    """
    return {
        "pending": [_with_agent(one, one.agent_uid) for one in listing.pending],
        "paused": [_with_agent(one, one.agent_uid) for one in listing.paused],
    }


def _with_agent(one: msgspec.Struct, uid: int) -> Json:
    fields: dict[str, Json] = {**msgspec.to_builtins(one), "agent": agent(uid)}
    return fields
