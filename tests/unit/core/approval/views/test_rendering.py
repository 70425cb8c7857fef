"""Text of a question: complete, and questions with equal texts are equal."""

import json
import unicodedata

import pytest
from hypothesis import given

from mcpwrap.core.approval.views import rendering
from mcpwrap.core.approval.views.rendering import difference, pretty, pretty_params
from mcpwrap.core.approval.views.shown_arguments import DiffLine
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.approval.questions import all_params, question


@pytest.mark.parametrize(
    ("params", "shown"),
    [
        ({"name": "t", "arguments": {"b": 1, "a": [True]}}, '{"a":[true],"b":1}'),
        ({"name": "t", "arguments": {"a": 1}, "_meta": {"x": 1}}, '{"a":1}'),
        ({"name": "t"}, "{}"),
        ({"uri": "file:///a", "_meta": {}}, '{"uri":"file:///a"}'),
        # With further members all params are shown.
        ({"name": "t", "arguments": {}, "x": 1}, '{"arguments":{},"name":"t","x":1}'),
    ],
)
def test_arguments_or_all_params_are_shown(params: dict[str, Json], shown: str) -> None:
    assert pretty(question(params)) == json.dumps(json.JSONDecoder().decode(shown), indent=2)


@pytest.mark.parametrize(
    ("deciding", "shown"),
    [
        ((), '{"a":{"x":1,"y":2},"b":[{"p":1,"q":2}],"c":0}'),
        (("c", "B"), '{"b":[{"p":1,"q":2}],"c":0,"a":{"x":1,"y":2}}'),  # readers may ignore case
        (("none",), '{"a":{"x":1,"y":2},"b":[{"p":1,"q":2}],"c":0}'),
    ],
)
def test_arguments_that_decide_are_first(deciding: tuple[str, ...], shown: str) -> None:
    arguments: Json = {"b": [{"q": 2, "p": 1}], "c": 0, "a": {"y": 2, "x": 1}}
    found = pretty_params({"name": "t", "arguments": arguments}, deciding)
    assert found == json.dumps(json.loads(shown), indent=2)


@given(all_params)
def test_the_text_has_only_visible_characters(params: dict[str, Json]) -> None:
    for line in pretty(question(params)).split("\n"):
        assert line.isprintable()
        assert not any(unicodedata.category(char) in {"Cf", "Cc", "Zl", "Zp"} for char in line)
        assert not set(line) & set("\u3164\u034f\ufe0f\u00a0\u3000\u115f\u17b4")


@given(all_params, all_params)
def test_different_params_have_different_texts(one: dict[str, Json], two: dict[str, Json]) -> None:
    shown = [pretty(question(params)) for params in (one, two)]
    same = [json.dumps({**params, "_meta": 0}, sort_keys=True) for params in (one, two)]
    assert (shown[0] == shown[1]) == (same[0] == same[1])


def test_the_diff_to_the_last_approved_one() -> None:
    before = question({"name": "t", "arguments": {"path": "/a", "q": "x\ny", "z": [1]}})
    now = question({"name": "t", "arguments": {"path": "/b\u202e", "q": "x\ny", "z": [1]}})
    assert difference(before, before) == []
    assert difference(before, now) == [
        DiffLine("@", "@ -1,3 +1,3 @@"),
        DiffLine("-", 'path: "/a"'),
        DiffLine("+", r'path: "/b\u202e"'),
        DiffLine(" ", "q: text, 2 lines, 3 characters"),
        DiffLine(" ", "  │ x"),
    ]


def test_long_texts_are_not_compared() -> None:
    many: list[Json] = [n % 101 for n in range(rendering.MAX_COMPARED_LINES)]
    before = question({"name": "t", "arguments": {"x": many}})
    now = question({"name": "t", "arguments": {"x": many[::-1]}})
    assert difference(before, now) == [DiffLine("@", "over 5000 lines: not compared")]
    assert difference(now, now) == []
