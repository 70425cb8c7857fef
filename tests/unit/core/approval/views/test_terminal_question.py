"""Question on a shared terminal: complete, what decides first, and no text at the left edge."""

from math import inf

import msgspec
import pytest
from hypothesis import given

from mcpwrap.core.approval.approval_rule import FixedArguments
from mcpwrap.core.approval.document import Question
from mcpwrap.core.approval.entry import ApprovalSubject, QueuedApproval
from mcpwrap.core.approval.views.shown_arguments import CHANGED, shown_arguments
from mcpwrap.core.approval.views.terminal_question import CHANGED_SINCE, question_rows
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.approval.questions import all_params, call, question

FIRST = "mcpwrap: approval 7f3a of sqlite: t"
LAST = "mcpwrap: approve 7f3a? The agent runs under your account, too. [y/n]"
BEFORE = call({"a": 1})


def entry(deciding: tuple[str, ...] = (), message: str = "") -> QueuedApproval:
    about = ApprovalSubject(
        digest="d", size=1, agent_uid=1000, server="sqlite", session="1", method="tools/call",
        target="t", rule="deleting", message=message, expires_s=inf,
        fixed=FixedArguments(deciding, ()),
    )  # fmt: skip
    return QueuedApproval(id="7f3a", about=about, asked_at_s=0.0)


def changed(definition: str) -> Question:
    return msgspec.structs.replace(BEFORE, definition=definition)


@pytest.mark.parametrize(
    ("deciding", "arguments", "shown"),
    [
        ((), {}, ["    no arguments"]),
        ((), {"b": 1, "a": "x"}, ['      a: "x"', "      b: 1"]),
        (
            ("B",),
            {"b": 1, "a": "x"},
            [
                "    arguments that decide:",
                "      b: 1",
                "    other arguments:",
                '      a: "x"',
            ],
        ),
        (
            (),
            {"q": "one\ntwo"},
            ["      q: text, 2 lines, 7 characters", "        │ one", "        │ two"],
        ),
    ],
)
def test_arguments(deciding: tuple[str, ...], arguments: Json, shown: list[str]) -> None:
    rows = question_rows(entry(deciding), call(arguments), None, 80)
    assert rows == [FIRST, "    rule deleting", *shown, LAST]


@pytest.mark.parametrize(
    ("asked", "before", "shown"),
    [
        (BEFORE, None, []),
        (changed("12"), None, [f"    {CHANGED}"]),
        (changed("12"), changed("12"), [f"    {CHANGED}"]),
        (changed("12"), BEFORE, [f"    {CHANGED_SINCE}"]),
        (BEFORE, changed("12"), [f"    {CHANGED_SINCE}"]),
    ],
)
def test_changes_of_the_tool(asked: Question, before: Question | None, shown: list[str]) -> None:
    rows = question_rows(entry(message="Sure?"), asked, before, 80)
    assert rows == [FIRST, "    rule deleting: Sure?", *shown, "      a: 1", LAST]


@given(all_params)
def test_no_text_of_the_agent_begins_a_row(params: dict[str, Json]) -> None:
    asked = msgspec.structs.replace(question(params), target="t" * 100)
    first, *rows, last = question_rows(entry(), asked, None, 40)
    assert first.startswith("mcpwrap: approval 7f3a of sqlite: t")
    assert last == LAST
    assert all(row.startswith("    ") and len(row) <= 40 for row in rows)
    text = "".join(row[4:] for row in rows).replace(" ", "")
    for part in shown_arguments(asked):
        assert "".join(part.plain).replace(" ", "") in text
