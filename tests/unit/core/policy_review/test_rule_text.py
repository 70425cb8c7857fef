"""The text of a suggestion is read as its rule and its cases."""

import pytest

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.cases import parse_cases
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.core.policy.cases import difference
from mcpwrap.core.policy.compiled import compile_policy
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Condition,
    Equals,
    Inside,
    Length,
    Matches,
    NegatedCondition,
    NegatedTest,
    OneOf,
    Policy,
    Range,
    Rule,
    Sql,
)
from mcpwrap.core.policy_review.rule_text import (
    case_lines,
    rule_lines,
    summary,
    with_cases,
    with_rule,
)
from mcpwrap.core.policy_review.suggestions import Suggestion
from mcpwrap.core.protocol.json_value import Json

NASTY = "quotes \" ' \\ # : {x} \x7f é \u2028 \U0001f600\n- new"
WHEN: tuple[Condition, ...] = (
    ArgumentCondition("a", Equals('"yes"')),
    ArgumentCondition('["b c"]', OneOf(('"x"', "1", "null", "true", "1.5")), "null"),
    ArgumentCondition("d", Matches(r"^a\.[0-9]{1,2}$")),
    ArgumentCondition("e", Inside("/srv/x y")),
    ArgumentCondition("f", Length(None, 200)),
    ArgumentCondition("g", Range(1, 2.5)),
)
CALL: dict[str, Json] = {
    "a": "yes", "d": "a.1", "e": "/srv/x y/z", "f": NASTY, "g": 2,
}  # fmt: skip


def suggestion(*when: Condition, **fields: object) -> Suggestion:
    rule = Rule(
        name="accepted-00",
        servers=("s",),
        tools=("t",),
        when=when,
        action="allow",
        instead_of=("ask", "default.x"),
    )
    values: dict[str, object] = {
        "id": "00", "rule": rule, "approved": (CALL,), "asked": 41, "answered": 38, "denied": 2,
        "refused": (({**CALL, "a": "no"}, "needs-approval"), ({}, "needs-approval")),
    } | fields  # fmt: skip
    return Suggestion(**values)  # type: ignore[arg-type]


def test_the_rule_is_read_as_it_is() -> None:
    one, other = suggestion(*WHEN), suggestion()
    text = with_rule(with_rule("", one), suggestion())
    assert text.isascii()
    assert text.count("rules:") == 1
    with pytest.raises(Exception, match="accepted-00"):  # twice the same name
        parse_policy([SourceFile("f", text.encode())])
    for each in (one, other):
        alone = parse_policy([SourceFile("f", with_rule("", each).encode())])
        assert alone.rules == (each.rule,)


def test_a_file_without_rules_gets_the_key_again() -> None:
    text = with_rule("version: 1\n", suggestion())
    assert parse_policy([SourceFile("f", text.encode())]).rules == (suggestion().rule,)


def test_the_cases_are_what_the_rule_decides() -> None:
    one = suggestion(*WHEN)
    cases = parse_cases(SourceFile("f", with_cases(with_cases("", one), one).encode()))
    assert len(cases) == 6
    asks = Rule(name="ask", tools=("*",), action="allow_with_approval")
    policy = compile_policy(Policy(rules=(asks, one.rule)), "s")
    assert [difference(policy, case) for case in cases] == [""] * 6
    without = compile_policy(Policy(rules=(asks,)), "s")
    assert [bool(difference(without, case)) for case in cases] == [True, False, False] * 2


def test_no_more_than_some_cases_are_written() -> None:
    calls = tuple({"a": n} for n in range(50))
    lines = case_lines(suggestion(approved=calls, refused=()))
    assert len(lines) == 20


@pytest.mark.parametrize(
    ("denied", "text"),
    [
        (2, "41 questions would have been 3; none of your 2 denials would pass"),
        (1, "41 questions would have been 3; your denial would not pass"),
        (0, "41 questions would have been 3; you denied none"),
    ],
)
def test_the_summary_counts_questions(denied: int, text: str) -> None:
    assert summary(suggestion(denied=denied)) == text


@pytest.mark.parametrize(
    "condition",
    [
        NegatedCondition(ArgumentCondition("a", Equals("1"))),
        ArgumentCondition("a", NegatedTest(Equals("1"))),
        ArgumentCondition("a", Sql("drop")),
    ],
)
def test_other_conditions_have_no_text(condition: Condition) -> None:
    with pytest.raises(TypeError):
        rule_lines(suggestion(condition))


def nested(levels: int) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("call", "count"),
    [
        ({"x" * 900: 1}, 2),
        ({"x" * 2000: 1}, 1),  # a key that YAML does not take
        ({"x": {"y": "z" * 2000}}, 1),
        ({"x": nested(19)}, 2),
        ({"x": nested(60)}, 1),
    ],
)
def test_a_refused_call_that_yaml_does_not_take_is_no_case(
    call: dict[str, Json], count: int
) -> None:
    text = with_cases("", suggestion(*WHEN, refused=((call, "block"),)))
    assert len(parse_cases(SourceFile("cases.yaml", text.encode()))) == count
