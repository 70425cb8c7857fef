"""Text of a group of pending approvals: each request complete, what they share said once."""

from collections.abc import Sequence

from mcpwrap.cli.approvals.text import (
    PageLine,
    agent,
    argument_lines,
    cell,
    expiry,
    moment,
    preview_lines,
    span,
    tool_of,
)
from mcpwrap.core.approval.views.question_groups import QuestionGroup, brief, columns
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.gate_client.group_answers import PendingCall

_YOU = {"yes": "you may answer", "proof": "you may answer with proof", "no": "you may not answer"}


def group_title(group: QuestionGroup) -> str:
    """Return the line about a group in a list."""
    one = group.first
    what = f"{len(group.pending)} calls of {tool_of(one)} on {one.server} by {agent(one.agent_uid)}"
    return one_line(f"{what}, rule {one.rule}; {_YOU[one.may]}")


def group_table(members: Sequence[PendingCall], now: float) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns of a group's table, and its rows."""
    names, rows = columns([brief(one.seen.question, one.pending.deciding) for one in members])
    head = ["ID", "AGE", "EXPIRES", "ASKED", *map(cell, names)]
    return head, [
        [
            cell(one.pending.id),
            span(now - one.pending.asked_at),
            span(one.pending.expires_at - now) if one.pending.expires_at else "never",
            str(one.pending.times),
            *map(cell, row),
        ]
        for one, row in zip(members, rows, strict=True)
    ]


def group_page(members: Sequence[PendingCall]) -> list[PageLine]:
    """Return the page of a group, with all arguments of each request.

    What an approval is bound to is taken from the documents, and never from the list.
    """
    first = members[0]
    question, pending = first.seen.question, first.pending
    rule = f"{pending.rule}: {pending.message}" if pending.message else pending.rule
    about = {
        "requests": str(len(members)),
        "agent": f"{agent(question.agent_uid)} (UID {question.agent_uid})",
        "server": question.server,
        "tool": tool_of(question),
        "rule": rule,
    }
    lines = [PageLine(f"{name:8} {one_line(text)}") for name, text in about.items()]
    for number, one in enumerate(members, 1):
        lines += _member_lines(number, len(members), one)
    return lines


def _member_lines(number: int, count: int, one: PendingCall) -> list[PageLine]:
    pending, seen = one.pending, one.seen
    head = f"{number} of {count}: {pending.id}"
    when = f"session {pending.session}, asked at {moment(pending.asked_at)}"
    lines = [
        PageLine(""),
        PageLine(one_line(head), "bold"),
        PageLine(one_line(f"  {when}, expires {expiry(pending)}, {seen.size} bytes")),
        PageLine(f"  sha256 {seen.digest}"),
    ]
    if seen.question.definition:
        what = "  The server has changed this tool since it first listed it."
        lines.append(PageLine(what, "yellow"))
    return lines + [
        line._replace(text=f"  {line.text}") if line.text else line
        for line in (*argument_lines(pending, seen.question)[1:], *preview_lines(seen))
    ]
