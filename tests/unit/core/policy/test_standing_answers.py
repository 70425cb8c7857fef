"""A rule with `instead_of` answers the questions of the rules that it names, and of no others."""

import pytest

from mcpwrap.core.policy.compiled import CALL, compile_policy
from mcpwrap.core.policy.decision import Decision
from mcpwrap.core.policy.explain import explain
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Condition,
    Equals,
    NegatedCondition,
    Policy,
    Rule,
)
from mcpwrap.core.protocol.json_value import Json

IS_A = (ArgumentCondition("x", Equals('"a"')),)
ASK = Rule(name="ask", tools=("t",), action="allow_with_approval")
OTHER = Rule(name="other", tools=("t",), when=IS_A, action="allow_with_approval")
BLOCK = Rule(name="no", tools=("*",), when=IS_A, action="block")
METHOD = Rule(name="method", methods=("tools/call",), action="allow_with_approval")
LOG = Rule(name="log", tools=("t",), action="log")
A: Json = {"x": "a"}


def answer(*names: str, when: tuple[Condition, ...] = IS_A, tool: str = "t") -> Rule:
    return Rule(name="answer", tools=(tool,), when=when, action="allow", instead_of=names)


@pytest.mark.parametrize(
    ("rules", "arguments", "passes"),
    [
        ((ASK, answer("ask")), A, True),
        ((answer("ask"), ASK), A, True),  # wherever it stands
        ((ASK,), A, False),
        ((ASK, answer("ask")), {"x": "b"}, False),
        ((ASK, answer("ask")), {"x": 1}, False),  # cannot be judged
        ((ASK, answer("ask")), {}, False),
        ((ASK, answer("ask")), {"x": "a", "y": 1}, False),  # an argument that it does not name
        ((ASK, answer("ask")), [], False),
        ((ASK, answer("another")), A, False),
        ((ASK, answer("ask", tool="u")), A, False),
        ((ASK, OTHER, answer("ask")), A, False),  # the second would ask, too
        ((ASK, OTHER, answer("ask", "other")), A, True),
        ((ASK, BLOCK, answer("ask", "no")), A, False),  # a block is never answered
        ((BLOCK, ASK, answer("ask", "no")), A, False),
        ((METHOD, answer("method")), A, True),
        ((ASK, answer("ask", when=())), {}, True),
        ((ASK, answer("ask", when=())), A, False),
        ((ASK, answer("ask", when=(NegatedCondition(IS_A[0]),))), {"x": "b"}, True),
        ((ASK, answer("ask", when=(ArgumentCondition("[0]", Equals("1")),))), {}, False),
        # It decides nothing by itself.
        ((answer("ask"),), A, True),
        ((answer("ask"), Rule(name="all", tools=("*",), action="block")), A, False),
    ],
)
def test_a_question_is_answered(rules: tuple[Rule, ...], arguments: Json, *, passes: bool) -> None:
    policy = compile_policy(Policy(rules=rules), "s")
    judgement = policy.judge(CALL, {"name": "t", "arguments": arguments})
    assert (judgement.decision is Decision.ALLOW) == passes
    if passes and ASK in rules:
        assert judgement.rule == "answer"


def test_the_same_holds_for_questions_of_the_default_policy() -> None:
    default = Rule(name="default.x", tools=("*",), when=IS_A, action="allow_with_approval")
    policy = Policy(rules=(LOG, answer("default.x")), default_rules=(default,))
    judgement = compile_policy(policy, "s").judge(CALL, {"name": "t", "arguments": A})
    assert judgement.decision is Decision.ALLOW
    assert (judgement.rule, judgement.notes) == ("answer", ("log",))
    both = Policy(rules=(ASK, answer("ask")), default_rules=(default,))
    judgement = compile_policy(both, "s").judge(CALL, {"name": "t", "arguments": A})
    assert judgement.decision is Decision.NEEDS_APPROVAL


def test_explain_shows_the_answer_after_the_question() -> None:
    policy = compile_policy(Policy(rules=(ASK, answer("ask"))), "s")
    params: dict[str, Json] = {"name": "t", "arguments": A}
    rules = explain(policy, CALL, params).rules
    assert [rule.name for rule in rules] == ["ask", "answer"]
    assert rules[1].does == "allows it instead of the question of ask"
    other: dict[str, Json] = {"name": "t", "arguments": {"x": "b"}}
    assert explain(policy, CALL, other).rules[1].does == "does not apply"
