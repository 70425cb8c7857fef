"""Approval rules in words."""

import pytest

from mcpwrap.core.approval.approval_rule import TickedArgument
from mcpwrap.core.approval.rule_text import argument_texts, bounds_text, span_text
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.approval.questions import call

TABLE: list[tuple[Json, dict[str, str], list[tuple[str, str]]]] = [
    ({"list": "groceries", "id": 5}, {"id": "*"},
     [("id", "any value, or none"), ("list", '"groceries", exactly')]),
    ({"path": "/notes/a"}, {"path": "/notes/*", "gone": "*"}, [("path", "a text like /notes/*")]),
    ({"a": {"b": [1, None]}}, {}, [("a", '{"b": [1, null]}, exactly')]),
    ({"a\n": "\x1b\u202e"}, {}, [(r"a\n", r'"\u001b\u202e", exactly')]),
    ({}, {}, []),
    (None, {}, [("all params", "as they are")]),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "ticked", "texts"), TABLE)
def test_each_argument(
    arguments: Json, ticked: dict[str, str], texts: list[tuple[str, str]]
) -> None:
    found = argument_texts(call(arguments), [TickedArgument(*one) for one in ticked.items()])
    assert found == texts


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ((3600, 0, ""), "for 1 hour"),
        ((0, 1, ""), "1 time"),
        ((0, 20, "session 12-1"), "20 times, in session 12-1 alone"),
        ((90, 2, ""), "for 1 minute 30 seconds, 2 times"),
    ],
)
def test_bounds(bounds: tuple[float, int, str], text: str) -> None:
    assert bounds_text(*bounds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 seconds"),
        (59.9, "59 seconds"),
        (86_400 * 30, "30 days"),
        (86_400 + 3600 * 4 + 5, "1 day 4 hours"),
        (86_400 + 5, "1 day"),
    ],
)
def test_spans(seconds: float, text: str) -> None:
    assert span_text(seconds) == text
