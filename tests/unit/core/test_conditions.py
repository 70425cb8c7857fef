"""Each condition on each kind of value: holds, fails, or cannot be judged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.conditions import MAX_TEXT_CHARS, compiled, patterns_by_path
from mcpwrap.core.judgement import Json
from mcpwrap.core.rules import (
    Condition,
    Equals,
    Inside,
    Inverted,
    Length,
    Matches,
    NotSo,
    OfArgument,
    OneOf,
    Range,
    Sql,
    Test,
)
from mcpwrap.core.truth import FAILS, HOLDS, UNJUDGEABLE, Truth

TESTS: list[tuple[Test, Json, Truth]] = [
    (Equals('"a"'), "a", HOLDS),
    (Equals('"a"'), "A", FAILS),
    (Equals('"a"'), 5, UNJUDGEABLE),
    (Equals('"a"'), None, UNJUDGEABLE),
    (Equals("1"), 1, HOLDS),
    (Equals("1"), 1.0, HOLDS),
    (Equals("1"), 2, FAILS),
    (Equals("1"), "1", UNJUDGEABLE),  # servers take it for 1
    (Equals("1"), True, UNJUDGEABLE),
    (Equals("true"), True, HOLDS),
    (Equals("true"), False, FAILS),
    (Equals("true"), "true", UNJUDGEABLE),
    (Equals("true"), 1, UNJUDGEABLE),
    (Equals("null"), None, HOLDS),
    (Equals("null"), 0, UNJUDGEABLE),
    (Equals("9007199254740993"), 9007199254740992, FAILS),
    (Equals("9007199254740993"), 9007199254740992.0, FAILS),
    (Equals('[1,"a"]'), [1.0, "a"], HOLDS),
    (Equals('[1,"a"]'), ["1", "a"], UNJUDGEABLE),
    (Equals('[1,"a"]'), ["1", "b"], FAILS),
    (Equals('[1,"a"]'), [1], FAILS),
    (Equals('[1,"a"]'), "a", UNJUDGEABLE),
    (Equals('{"a":true}'), {"a": True}, HOLDS),
    (Equals('{"a":true}'), {"a": True, "b": 1}, FAILS),
    (Equals('{"a":true}'), {"a": "yes"}, UNJUDGEABLE),
    (Equals('{"a":true}'), {"A": True}, UNJUDGEABLE),  # a server may take it for an a
    (Equals('{"a":true}'), {"a": True, "A": False}, UNJUDGEABLE),
    (Equals('{"a":true}'), {}, FAILS),
    (OneOf(('"a"', '"b"')), "b", HOLDS),
    (OneOf(('"a"', '"b"')), "c", FAILS),
    (OneOf(('"a"', '"b"')), ["a"], UNJUDGEABLE),
    (OneOf(('"a"', "1")), 1, HOLDS),
    (OneOf(('"a"', "1")), 2, UNJUDGEABLE),  # text is wanted too, and 2 might be taken for that
    (Matches("a+b"), "xaab", HOLDS),
    (Matches("a+b"), "xa", FAILS),
    (Matches("a+b"), ["ab"], UNJUDGEABLE),
    (Matches("a"), "a\ud800", UNJUDGEABLE),
    (Matches("a"), "b" * MAX_TEXT_CHARS, FAILS),
    (Matches("a"), "b" * (MAX_TEXT_CHARS + 1), UNJUDGEABLE),
    (Length(2, 3), "ä", FAILS),
    (Length(2, 3), "äö", HOLDS),
    (Length(2, 3), [1, 2, 3], HOLDS),
    (Length(2, 3), "aaaa", FAILS),
    (Length(None, 3), "", HOLDS),
    (Length(2, None), [], FAILS),
    (Length(2, 3), {"a": 1, "b": 2}, UNJUDGEABLE),
    (Length(2, 3), 2, UNJUDGEABLE),
    (Range(2, 3), 2, HOLDS),
    (Range(2, 3), 3.0001, FAILS),
    (Range(None, 3), -(10**400), HOLDS),
    (Range(2.5, None), 2, FAILS),
    (Range(0, 3), True, UNJUDGEABLE),
    (Range(0, 3), "2", UNJUDGEABLE),
    (Inside("/a"), "/a/b", HOLDS),
    (Inside("/a"), ["/a/b"], UNJUDGEABLE),
    (Sql("drop"), "DROP TABLE x", HOLDS),
    (Sql("drop"), "SELECT 1", FAILS),
    (Sql("drop"), "DROP", UNJUDGEABLE),
    (Sql("drop"), 5, UNJUDGEABLE),
    (Sql("unbounded_select", "tsql"), "SELECT TOP 5 * FROM t", FAILS),
    (NotSo(Equals('"a"')), "b", HOLDS),
    (NotSo(Equals('"a"')), "a", FAILS),
    (NotSo(Equals('"a"')), 5, UNJUDGEABLE),
]


def judged(condition: Condition, root: Json) -> Truth:
    return compiled(condition, patterns_by_path([condition]))(root)


@pytest.mark.parametrize(("test", "value", "truth"), TESTS)
def test_a_test_of_a_value(test: Test, value: Json, truth: Truth) -> None:
    assert judged(OfArgument("x", test), {"x": value}) is truth
    assert judged(OfArgument("y[0].x", test), {"y": [{"x": value}]}) is truth
    opposite = {HOLDS: FAILS, FAILS: HOLDS, UNJUDGEABLE: UNJUDGEABLE}[truth]
    assert judged(Inverted(OfArgument("x", test)), {"x": value}) is opposite


@pytest.mark.parametrize("root", [{}, {"X": "a"}, [], "x", None, 5, {"x": {}}])
def test_what_is_not_there_cannot_be_judged(root: Json) -> None:
    for test in (Equals('"a"'), NotSo(Equals('"a"')), Matches(""), Length(0, None)):
        assert judged(OfArgument("x", test), root) is UNJUDGEABLE
        assert judged(OfArgument("x.y", test), root) is UNJUDGEABLE


SAFE = NotSo(Inside("/a"))


@pytest.mark.parametrize(
    ("root", "some_outside", "none_outside"),
    [
        ({"p": ["/a/1", "/a/2"]}, FAILS, HOLDS),
        ({"p": ["/a/1", "/b"]}, HOLDS, FAILS),
        ({"p": ["/a/1", 5]}, UNJUDGEABLE, UNJUDGEABLE),
        ({"p": ["/b", 5]}, HOLDS, FAILS),
        ({"p": []}, UNJUDGEABLE, UNJUDGEABLE),
        ({"p": "/a/1"}, UNJUDGEABLE, UNJUDGEABLE),
        ({}, UNJUDGEABLE, UNJUDGEABLE),
    ],
)
def test_some_and_none_of_a_list(root: Json, some_outside: Truth, none_outside: Truth) -> None:
    assert judged(OfArgument("p[*]", SAFE), root) is some_outside
    assert judged(Inverted(OfArgument("p[*]", SAFE)), root) is none_outside


@pytest.mark.parametrize(
    ("root", "truth"),
    [
        ({}, FAILS),  # the server takes false
        ({"force": None}, FAILS),
        ({"force": True}, HOLDS),
        ({"force": "true"}, UNJUDGEABLE),
        ([], UNJUDGEABLE),
        (None, UNJUDGEABLE),
        ("force", UNJUDGEABLE),
    ],
)
def test_what_a_server_takes_where_nothing_is(root: Json, truth: Truth) -> None:
    assert judged(OfArgument("force", Equals("true"), "false"), root) is truth


@pytest.mark.parametrize("root", [{"q": "a", "Q": "b"}, {"Q": "b"}, {"Q": "b", "q": None}])
def test_where_another_key_may_be_taken_for_it_nothing_is_judged(root: Json) -> None:
    for default in (None, '"a"'):
        assert judged(OfArgument("q", Equals('"b"'), default), root) is UNJUDGEABLE
        assert judged(OfArgument("x.q", Equals('"b"'), default), {"x": root}) is UNJUDGEABLE


def test_where_nothing_is_in_nothing_the_default_stands_too() -> None:
    condition = OfArgument("options.force", Equals("true"), "true")
    assert judged(condition, {}) is HOLDS
    assert judged(condition, {"options": {}}) is HOLDS
    assert judged(condition, {"options": "force"}) is UNJUDGEABLE


def test_patterns_of_one_path_are_looked_for_at_once() -> None:
    conditions: list[Condition] = [
        OfArgument("q", Matches("a")),
        Inverted(OfArgument("q", NotSo(Matches("b")))),
        OfArgument("q", Matches("a")),
        OfArgument("r", Matches("a")),
        OfArgument("q", Equals("1")),
    ]
    patterns = patterns_by_path(conditions)
    assert {path: found.texts for path, found in patterns.items()} == {"q": ("a", "b"), "r": ("a",)}
    judges = [compiled(condition, patterns) for condition in conditions[:4]]
    assert [judge({"q": "b", "r": "a"}) for judge in judges] == [FAILS, HOLDS, FAILS, HOLDS]


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("xyz") | st.text(), inner),
    max_leaves=8,
)


@given(json, st.sampled_from(["x", "x.y", "x[*]", "x[*].y[*]", "[0]"]))
def test_no_arguments_raise(root: Json, path: str) -> None:
    for test in {type(test): test for test, _, _ in TESTS}.values():
        assert isinstance(judged(OfArgument(path, test), root), Truth)
        assert isinstance(judged(Inverted(OfArgument(path, test, "1")), root), Truth)
