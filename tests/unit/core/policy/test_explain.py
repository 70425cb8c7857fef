"""Explanation of a policy decision, in words."""

from mcpwrap.core.policy.arguments.kinds import SHELL_ARGUMENTS, SQL_ARGUMENTS
from mcpwrap.core.policy.compiled import compile_policy
from mcpwrap.core.policy.decision import Decision
from mcpwrap.core.policy.explain import Explanation, explain, words_of, words_of_rule
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Condition,
    Equals,
    Inside,
    Length,
    LimitsEntry,
    Matches,
    NegatedCondition,
    NegatedTest,
    OneOf,
    Policy,
    Range,
    Rule,
    Shell,
    Sql,
)
from mcpwrap.core.protocol.json_value import Json

WORDS: list[tuple[Condition, str]] = [
    (ArgumentCondition("a.b", Equals('"x"')), 'a.b equals "x"'),
    (ArgumentCondition("a", Equals("true"), "false"), "a (false if it is missing) equals true"),
    (ArgumentCondition("a", OneOf(("1", "2"))), "a is one of 1, 2"),
    (ArgumentCondition("a", Matches("x\x1b")), "a matches 'x\\x1b'"),
    (ArgumentCondition("a", Length(1, None)), "a has a length from 1"),
    (ArgumentCondition("a", Range(1, 2.5)), "a is from 1 up to 2.5"),
    (ArgumentCondition("a", Sql("drop")), "a is SQL with drop (sqlite)"),
    (ArgumentCondition(SQL_ARGUMENTS, Sql("delete", "any")),
     "an argument for SQL is SQL with delete (any)"),
    (ArgumentCondition(SHELL_ARGUMENTS, Shell("runs", ("a b", "c"))),
     "an argument for a command line runs a b, c"),
    (ArgumentCondition("a", Shell("forces_a_push")), "a is a command line that forces a push"),
    (ArgumentCondition("a[*]", NegatedTest(Inside("/a"))), "a[*] not (is inside /a)"),
    (NegatedCondition(ArgumentCondition("a", Length(None, 2))), "not (a has a length up to 2)"),
]  # fmt: skip
LONG = ArgumentCondition("a", Length(5, None))
POLICY = compile_policy(
    Policy(
        limits=(LimitsEntry(failures=3),),
        rules=(
            Rule(name="log", action="log", tools=("t",)),
            Rule(name="not-this", action="block", tools=("u",)),
            Rule(name="long", action="block", tools=("t",), when=(LONG,)),
            Rule(
                name="no",
                action="block",
                tools=("t",),
                when=(
                    ArgumentCondition("a", Equals('"x"')),
                    NegatedCondition(ArgumentCondition("p[*]", Equals("1"))),
                ),
            ),
            Rule(name="rest", action="allow", tools=("*",)),
            Rule(name="never", action="block", tools=("*",)),
            Rule(name="hide", action="hide", tools=("h",)),
            Rule(name="read", action="block", methods=("resources/read",)),
        ),
    ),
    "s",
)


def explained(arguments: Json, tool: str = "t") -> Explanation:
    return explain(POLICY, "tools/call", {"name": tool, "arguments": arguments})


def test_each_condition_has_words() -> None:
    for condition, words in WORDS:
        assert words_of(condition) == words


def test_all_rules_up_to_the_one_that_decides_are_told() -> None:
    found = explained({"a": "yy", "p": [2, 3]})
    assert [(rule.name, rule.does) for rule in found.rules] == [
        ("log", "notes `log`; the next rule is evaluated"),
        ("long", "does not apply"),
        ("no", "does not apply"),
        ("rest", "applies"),
    ]
    assert [condition.truth for condition in found.rules[2].conditions] == [
        "does not hold",
        "holds",
    ]
    assert found.rules[2].conditions[1].found == ("2", "3")
    assert found.judgement.decision is Decision.ALLOW
    assert (found.is_hidden, found.limits) == (False, LimitsEntry(failures=3))


def test_what_cannot_be_judged_is_told_with_what_stood_there() -> None:
    found = explained({"p": 5})
    assert (found.rules[-1].name, found.rules[-1].does) == (
        "long",
        "applies: a condition that cannot be judged counts as holding",
    )
    assert found.rules[-1].conditions[0].found == ("there is no value",)
    found = explained({"a": "x", "p": 5})
    assert found.rules[-1].conditions[1].found == ("the value there has no such parts",)
    [shown] = explained({"a": "x", "A": "y"}).rules[-1].conditions[0].found
    assert shown.startswith("another key is the same to some reader")


def test_what_stood_there_is_short_and_steers_no_terminal() -> None:
    [shown] = explained({"a": "\x1b\x9b\x7f\u202eü" + "x" * 100}).rules[1].conditions[0].found
    assert shown.startswith(r'"\u001b\x9b\x7f\u202e\xfc' + "x")
    assert shown.endswith("x...")
    assert len(shown) < 100


def test_a_tool_that_is_hidden_and_other_methods() -> None:
    policy = compile_policy(Policy(rules=(Rule(name="h", action="hide", tools=("h",)),)), "s")
    found = explain(policy, "tools/call", {"name": "h"})
    assert (found.is_hidden, found.rules[0].does) == (True, "applies")
    found = explain(POLICY, "resources/read", {"uri": "x"})
    assert ([rule.name for rule in found.rules], found.limits) == (["read"], None)
    assert explain(POLICY, "prompts/get", {}).rules == ()  # none decides
    found = explain(POLICY, "tools/call", {"name": 5})
    assert found.judgement.decision is Decision.BLOCK


def test_arguments_of_a_kind_are_shown_with_their_paths() -> None:
    condition = ArgumentCondition(SQL_ARGUMENTS, Sql("delete", "any"))
    rule = Rule(name="r", action="block", tools=("*",), when=(condition,))
    policy = compile_policy(Policy(rules=(rule,)), "s")
    params: dict[str, Json] = {"name": "t", "arguments": {"a": {"sql": "DELETE FROM t"}}}
    [explained] = explain(policy, "tools/call", params).rules
    assert explained.conditions[0].found == ('a.sql: "DELETE FROM t"',)


def test_rules_for_other_projects_are_named() -> None:
    rule = Rule(name="prod", action="block", tools=("t",), projects=("/a/prod", "/a/prod/*"))
    assert words_of_rule(rule) == "blocks calls of t in /a/prod or /a/prod/*"
    policy = compile_policy(Policy(rules=(rule,)), "s")
    found = explain(policy, "tools/call", {"name": "t"})
    assert (found.rules, found.elsewhere) == ((), ("prod",))
    found = explain(policy.in_project("/a/prod"), "tools/call", {"name": "t"})
    assert ([one.name for one in found.rules], found.elsewhere) == (["prod"], ())
