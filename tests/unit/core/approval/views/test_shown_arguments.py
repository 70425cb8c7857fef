"""Arguments as an approver reads them: complete, deciding ones first, edits as diffs."""

import unicodedata

import pytest
from hypothesis import given

from mcpwrap.core.approval.document import Question, document
from mcpwrap.core.approval.views.shown_arguments import (
    MAX_EDIT_LINES,
    diff,
    plain_lines,
    shown_arguments,
)
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.approval.questions import all_params, question

LONG = "a\n" * MAX_EDIT_LINES


def call(**arguments: Json) -> Question:
    return question({"name": "t", "arguments": arguments})


def lines_of(asked: Question, *deciding: str) -> list[str]:
    return [line for one in shown_arguments(asked, deciding) for line in one.plain]


@pytest.mark.parametrize(
    ("arguments", "deciding", "lines"),
    [
        ({"a": 1, "b": "x"}, ("b",), ['b: "x"', "a: 1"]),
        ({"a": 1, "b": 2, "c": 3}, ("c", "b", "none"), ["c: 3", "b: 2", "a: 1"]),
        ({"a b": 1, "": 2}, (), ['[""]: 2', '["a b"]: 1']),  # not one name, so it is quoted
        ({"a": {"b": [1]}}, (), ["a: {", '    "b": [', "      1", "    ]", "  }"]),
        ({"t": "x\ny"}, (), ["t: text, 2 lines, 3 characters", "  │ x", "  │ y"]),
        # The newline at the end is a line, so that it is seen.
        ({"t": "x\n"}, (), ["t: text, 1 line, 2 characters", "  │ x", "  │ "]),
        # A backslash is doubled only where something is escaped.
        ({"t": "\\n\n"}, (), ["t: text, 1 line, 3 characters", r"  │ \n", "  │ "]),
        ({"t": "\\n\n\t"}, (), ["t: text, 2 lines, 4 characters; escaped", r"  │ \\n", r"  │ \t"]),
        ({"o": {"t": "\n"}}, (), ["o.t: text, 1 line, 1 characters", "  │ ", "  │ "]),
        (
            {"path": "p", "old_string": "a\nb", "new_string": "a\nc"},
            ("path",),
            ['path: "p"', "old_string, new_string: the second replaces the first",
             "  │   a", "  │ - b", "  │ + c"],
        ),
        (
            {"edits": [{"oldText": "a", "newText": "b\t", "n": 1}]},
            (),
            ["edits[0]: oldText, newText: the second replaces the first; escaped",
             "  │ - a", r"  │ + b\t", "edits[0].n: 1"],
        ),
        # Equal texts are no edit, and neither is a pair with a number.
        ({"oldText": "a", "newText": "a"}, (), ['newText: "a"', 'oldText: "a"']),
        ({"oldText": "a", "newText": 1}, (), ["newText: 1", 'oldText: "a"']),
    ],
)  # fmt: skip
def test_lines_of_arguments(
    arguments: dict[str, Json], deciding: tuple[str, ...], lines: list[str]
) -> None:
    assert lines_of(call(**arguments), *deciding) == lines


def test_params_besides_the_arguments_are_shown() -> None:
    asked = question({"name": "t", "arguments": {"uri": 1}, "task": {"ttl": 5}, "_meta": {}})
    assert lines_of(asked, "uri") == [
        "arguments.uri: 1",
        'name: "t"',
        "task: {",
        '    "ttl": 5',
        "  }",
    ]
    assert lines_of(question({"uri": "f:x"}), "uri") == ['uri: "f:x"']
    assert lines_of(question({"name": "t", "arguments": {}, "x": 1})) == [
        "arguments: {}", 'name: "t"', "x: 1",
    ]  # fmt: skip
    assert lines_of(question({"name": "t", "arguments": [1]})) == ["arguments: [", "    1", "  ]"]
    assert lines_of(question({"name": "t"})) == []


def test_an_edit_decides_if_one_of_its_texts_does() -> None:
    shown = shown_arguments(call(a=1, oldText="x", newText="y"), ("newText",))
    assert [(one.path, one.is_deciding) for one in shown] == [
        ("oldText, newText", True), ("a", False),
    ]  # fmt: skip


def test_edits_that_are_too_long_to_compare_are_two_texts() -> None:
    shown = shown_arguments(call(oldText=LONG, newText="x"))
    assert [(one.path, one.is_edit) for one in shown] == [("newText", False), ("oldText", False)]
    shown = shown_arguments(call(oldText="x\ny", newText="x"))
    assert [one.is_edit for one in shown] == [True]


def test_a_diff_of_equal_lines_is_empty() -> None:
    assert diff(["a"], ["a"], 2) == []


@given(all_params)
def test_lines_have_only_visible_characters(params: dict[str, Json]) -> None:
    for line in (*lines_of(question(params), "a"), *plain_lines(question(params))):
        assert line.isprintable()
        assert not any(unicodedata.category(char) in {"Cf", "Cc", "Zl", "Zp"} for char in line)


@given(all_params, all_params)
def test_different_params_have_different_lines(one: dict[str, Json], two: dict[str, Json]) -> None:
    asked = [question({**params, "name": "t"}) for params in (one, two)]
    same = document(asked[0]) == document(asked[1])
    if not same and {"arguments": {}} != asked[0].params != asked[1].params:
        shown = [lines_of(each) for each in asked]
        assert shown[0] != shown[1] or _without_empty(asked[0]) == _without_empty(asked[1])


def _without_empty(asked: Question) -> Json:
    """Return the params as they are read: no arguments are as good as none."""
    return {name: one for name, one in asked.params.items() if name != "_meta" and one != {}}
