"""`mcpwrap approvals list`: show pending approvals and paused agents. Reads only."""

import shlex
import time

import click
import msgspec

from mcpwrap.cli.approvals.group_text import group_table, group_title
from mcpwrap.cli.approvals.text import agent, cell, pause, span, tool_of
from mcpwrap.cli.approvals.user_option import user_option
from mcpwrap.cli.common.output import print_json, print_table
from mcpwrap.core.approval.views.question_groups import QuestionGroup, grouped
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.core.wire.approval_socket import Pending
from mcpwrap.errors import EXIT_OK
from mcpwrap.gate_client.approvals import Listing
from mcpwrap.gate_client.group_answers import members_of
from mcpwrap.gate_client.user_approvals import AnyApprovals, command_line, connect
from mcpwrap.linux import tty

COLUMNS = ["ID", "AGE", "AGENT", "SERVER", "TOOL", "RULE", "EXPIRES", "ASKED", "YOU"]
_YOU = {"yes": "may answer", "proof": "with proof", "no": "may not"}


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@user_option
def command(*, as_json: bool) -> int:
    """List pending requests and paused agents. Calls of one tool for one rule are one table.

    \b
    Example:  mcpwrap approvals list --json | jq -r '.pending[].id'
    Exit status: 0, also if nothing waits; 1 the gate does not answer.
    """
    with connect() as connection:
        listing = connection.listing()
        if as_json:
            print_json(fields_of(listing))
        else:
            show(connection, listing)
    return EXIT_OK


def show(connection: AnyApprovals, listing: Listing) -> None:
    """Print a table of the pending requests, one for each group, and the paused agents."""
    groups, now = grouped(listing.pending), time.time()
    if alone := [group.first for group in groups if not group.is_several]:
        print_table(COLUMNS, [cells(one, now) for one in alone])
    elif not groups:
        tty.say("nothing waits for approval")
    has_printed = bool(alone)
    for group in groups:
        if group.is_several:
            if has_printed:
                tty.say()
            _show_group(connection, group, now)
            has_printed = True
    for one in listing.paused:
        tty.say(pause(one))


def _show_group(connection: AnyApprovals, group: QuestionGroup, now: float) -> None:
    tty.say(group_title(group))
    if members := members_of(connection, group.pending):
        print_table(*group_table(members, now))
    if group.first.may != "no":
        named = shlex.join(["--server", group.first.server, "--tool", group.first.target])
        tty.say(one_line(f"all of them: {command_line()} approve --all {named}"))


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
        "groups": [
            {"key": group.key, "ids": [one.id for one in group.pending]}
            for group in grouped(listing.pending)
        ],
        "paused": [_with_agent(one, one.agent_uid) for one in listing.paused],
    }


def _with_agent(one: msgspec.Struct, uid: int) -> Json:
    fields: dict[str, Json] = {**msgspec.to_builtins(one), "agent": agent(uid)}
    return fields
