"""Policy conditions on each kind of value: true, false, or undecidable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.policy.conditions import compiled, patterns_by_path
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Condition,
    Equals,
    Inside,
    Length,
    Matches,
    NegatedCondition,
    NegatedTest,
    Test,
)
from mcpwrap.core.policy.tristate import FAILS, HOLDS, UNJUDGEABLE, Tristate
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.json_values import OF_FEW_KEYS
from tests.unit.core.policy.condition_table import TESTS


def judged(condition: Condition, root: Json) -> Tristate:
    return compiled(condition, patterns_by_path([condition]))(root)


@pytest.mark.parametrize(("test", "value", "truth"), TESTS)
def test_a_test_of_a_value(test: Test, value: Json, truth: Tristate) -> None:
    assert judged(ArgumentCondition("x", test), {"x": value}) is truth
    assert judged(ArgumentCondition("y[0].x", test), {"y": [{"x": value}]}) is truth
    opposite = {HOLDS: FAILS, FAILS: HOLDS, UNJUDGEABLE: UNJUDGEABLE}[truth]
    assert judged(NegatedCondition(ArgumentCondition("x", test)), {"x": value}) is opposite


@pytest.mark.parametrize("root", [{}, {"X": "a"}, [], "x", None, 5, {"x": {}}])
def test_what_is_not_there_cannot_be_judged(root: Json) -> None:
    for test in (Equals('"a"'), NegatedTest(Equals('"a"')), Matches(""), Length(0, None)):
        assert judged(ArgumentCondition("x", test), root) is UNJUDGEABLE
        assert judged(ArgumentCondition("x.y", test), root) is UNJUDGEABLE


SAFE = NegatedTest(Inside("/a"))


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
def test_some_and_none_of_a_list(
    root: Json, some_outside: Tristate, none_outside: Tristate
) -> None:
    assert judged(ArgumentCondition("p[*]", SAFE), root) is some_outside
    assert judged(NegatedCondition(ArgumentCondition("p[*]", SAFE)), root) is none_outside


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
def test_what_a_server_takes_where_nothing_is(root: Json, truth: Tristate) -> None:
    assert judged(ArgumentCondition("force", Equals("true"), "false"), root) is truth


@pytest.mark.parametrize("root", [{"q": "a", "Q": "b"}, {"Q": "b"}, {"Q": "b", "q": None}])
def test_where_another_key_may_be_taken_for_it_nothing_is_judged(root: Json) -> None:
    for default in (None, '"a"'):
        assert judged(ArgumentCondition("q", Equals('"b"'), default), root) is UNJUDGEABLE
        assert judged(ArgumentCondition("x.q", Equals('"b"'), default), {"x": root}) is UNJUDGEABLE


def test_where_nothing_is_in_nothing_the_default_stands_too() -> None:
    condition = ArgumentCondition("options.force", Equals("true"), "true")
    assert judged(condition, {}) is HOLDS
    assert judged(condition, {"options": {}}) is HOLDS
    assert judged(condition, {"options": "force"}) is UNJUDGEABLE


def test_patterns_of_one_path_are_looked_for_at_once() -> None:
    conditions: list[Condition] = [
        ArgumentCondition("q", Matches("a")),
        NegatedCondition(ArgumentCondition("q", NegatedTest(Matches("b")))),
        ArgumentCondition("q", Matches("a")),
        ArgumentCondition("r", Matches("a")),
        ArgumentCondition("q", Equals("1")),
    ]
    patterns = patterns_by_path(conditions)
    assert {path: found.texts for path, found in patterns.items()} == {"q": ("a", "b"), "r": ("a",)}
    judges = [compiled(condition, patterns) for condition in conditions[:4]]
    assert [judge({"q": "b", "r": "a"}) for judge in judges] == [FAILS, HOLDS, FAILS, HOLDS]


@given(OF_FEW_KEYS, st.sampled_from(["x", "x.y", "x[*]", "x[*].y[*]", "[0]"]))
def test_no_arguments_raise(root: Json, path: str) -> None:
    for test in {type(test): test for test, _, _ in TESTS}.values():
        assert isinstance(judged(ArgumentCondition(path, test), root), Tristate)
        assert isinstance(
            judged(NegatedCondition(ArgumentCondition(path, test, "1")), root), Tristate
        )
