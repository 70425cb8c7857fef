"""`mcpwrap approvals rules`: list, show and revoke the approvals that were saved as rules."""

import time
from collections.abc import Sequence

import click
import msgspec

from mcpwrap.cli.approvals.save_rule import aligned
from mcpwrap.cli.approvals.text import agent, cell, tool_of
from mcpwrap.cli.approvals.user_option import user_option
from mcpwrap.cli.common.output import print_json, print_table
from mcpwrap.core.approval import document
from mcpwrap.core.approval.approval_rule import ApprovalRule
from mcpwrap.core.approval.document import Question
from mcpwrap.core.approval.rule_text import BLOCKS_STAY, argument_texts, bounds_text, span_text
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.errors import EXIT_OK, McpwrapError, UsageError
from mcpwrap.gate_client.user_approvals import connect
from mcpwrap.linux import tty

COLUMNS = ["ID", "AGENT", "SERVER", "TOOL", "MAY DIFFER", "LEFT", "BY", "SINCE"]


@click.group("rules", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@user_option
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> int:
    """List the approvals that were saved as rules; `revoke` ends one.

    \b
    Example:  mcpwrap approvals rules
    Exit status: 0, also if there is none; 1 the gate does not answer.
    """
    if context.invoked_subcommand is not None:
        return EXIT_OK
    listed = saved()
    if as_json:
        print_json([_fields(rule) for rule in listed])
    elif listed:
        print_table(COLUMNS, [cells(rule, time.time()) for rule in listed])
    else:
        tty.say("no approval was saved as a rule")
    return EXIT_OK


@command.command("show")
@click.argument("id_", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@user_option
def show(*, id_: str, as_json: bool) -> int:
    """Show one rule in words. ID may be abbreviated to its first characters.

    \b
    Example:  mcpwrap approvals rules show 7f3a
    Exit status: 0; 1 the gate does not answer; 2 there is no such rule, or more than one.
    """
    rule = _chosen(saved(), id_)
    if as_json:
        print_json(_fields(rule))
    else:
        tty.say_lines(page(rule, time.time()))
    return EXIT_OK


@command.command("revoke")
@click.argument("ids", metavar="ID...", nargs=-1)
@click.option("--all", "are_all", is_flag=True, help="Revoke all rules that you see.")
@click.option("--server", default="", metavar="NAME", help="With --all: those of this server.")
@user_option
def revoke(*, ids: tuple[str, ...], are_all: bool, server: str) -> int:
    """Revoke rules: the calls that they let pass are asked about again.

    IDs may be abbreviated to their first characters. Whoever sees a rule may revoke it, without a
    password.

    \b
    Example:  mcpwrap approvals rules revoke 7f3a
    Exit status: 0 they are revoked; 1 the gate refused; 2 there is no such rule, or more than one.
    """
    if bool(ids) == are_all or (server and not are_all):
        raise UsageError(
            "name the rules by their IDs, or give --all, to which --server belongs",
            where="mcpwrap approvals rules revoke",
            fix="`mcpwrap approvals rules` lists the IDs",
            code="E-USAGE-EXCLUSIVE-OPTIONS",
        )
    listed = saved()
    if are_all:
        wanted = [rule for rule in listed if server in {"", rule.server}]
    else:
        wanted = [_chosen(listed, id_) for id_ in dict.fromkeys(ids)]
    with connect() as connection:
        for id_ in dict.fromkeys(rule.id for rule in wanted):
            tty.say(connection.revoke(id_).text)
    if not wanted:
        tty.say("no rule to revoke")
    return EXIT_OK


def saved() -> list[ApprovalRule]:
    """Return the rules that this account sees."""
    with connect() as connection:
        return connection.saved_rules()


def _chosen(rules: Sequence[ApprovalRule], start: str) -> ApprovalRule:
    """Return the one rule whose ID begins with `start`.

    Raises:
        UsageError: there is no such rule, or more than one.
    """
    found = [rule for rule in rules if rule.id.startswith(start)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(
            f"no approval rule has the ID {start!r}",
            where="mcpwrap approvals rules",
            fix="`mcpwrap approvals rules` lists the rules",
            code="E-APPROVAL-NO-RULE",
        )
    raise UsageError(
        f"{len(found)} approval rules have an ID that begins {start!r}",
        where="mcpwrap approvals rules",
        fix=f"name one: {', '.join(rule.id for rule in found[:10])}",
        code="E-APPROVAL-AMBIGUOUS-ID",
    )


def cells(rule: ApprovalRule, now: float) -> list[str]:
    """Return the cells of a rule's row, under `COLUMNS`."""
    return [
        cell(rule.id),
        cell(agent(rule.agent_uid)),
        cell(rule.server),
        cell(rule.target),
        cell(", ".join(f"{one.name}={one.glob}" for one in rule.ticked) or "nothing"),
        _left(rule, now),
        cell(rule.by),
        f"{span_text(now - rule.made_at)} ago",
    ]


def _left(rule: ApprovalRule, now: float) -> str:
    session = f"session {rule.session}" if rule.session else ""
    return bounds_text(max(1.0, rule.until - now) if rule.until else 0.0, rule.times, session)


def page(rule: ApprovalRule, now: float) -> list[str]:
    """Return the lines of one rule in words.

    Raises:
        McpwrapError: another version of mcpwrap has saved it.
    """
    question = _question(rule)
    about = [
        ("id", rule.id),
        ("agent", f"{agent(rule.agent_uid)} (UID {rule.agent_uid})"),
        ("server", rule.server),
        ("tool", tool_of(question)),
        ("answers", ", ".join(rule.answers)),
        ("left", _left(rule, now)),
        ("saved", f"{span_text(now - rule.made_at)} ago by {rule.by}"),
    ]
    return [*aligned(about, argument_texts(question, rule.ticked)), BLOCKS_STAY]


def _question(rule: ApprovalRule) -> Question:
    try:
        return document.read(rule.approved.encode())
    except ValueError as error:  # msgspec's are too
        raise McpwrapError(
            f"rule {rule.id} is of another version of mcpwrap, and covers nothing",
            where="mcpwrap approvals rules",
            fix=f"`mcpwrap approvals rules revoke {rule.id}`, and approve such a call anew",
            code="E-APPROVAL-VERSION",
        ) from error


def _fields(rule: ApprovalRule) -> dict[str, Json]:
    fields: dict[str, Json] = msgspec.to_builtins(rule)
    return {**fields, "agent": agent(rule.agent_uid)}
