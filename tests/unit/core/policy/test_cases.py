"""Policy case: agreement with a policy, or the difference."""

import pytest

from mcpwrap.core.policy.cases import Case, Expected, ExpectedResult, difference
from mcpwrap.core.policy.compiled import compile_policy
from mcpwrap.core.policy.rules import Policy, ResultRule, Rule
from mcpwrap.core.protocol.json_value import Json

POLICY = compile_policy(
    Policy(
        rules=(
            Rule(name="b", action="block", tools=("b",)),
            Rule(name="a", action="allow_with_approval", tools=("a",)),
            Rule(name="h", action="hide", tools=("h",)),
            Rule(name="m", action="block", methods=("x/y",)),
        ),
        results=(
            ResultRule(name="cap", tools=("*",), max_bytes=10),
            ResultRule(name="clean", methods=("*",), control_characters="remove"),
        ),
    ),
    "s",
)


@pytest.mark.parametrize(
    ("tool", "expect", "rule", "told"),
    [
        ("b", "block", "b", ""),
        ("b", "block", None, ""),
        ("b", "block", "other", "expected block by other, got block by the rule b"),
        ("b", "allow", None, "expected allow, got block by the rule b"),
        ("a", "needs-approval", "a", ""),
        ("h", "hidden", "h", ""),
        ("h", "block", None, "expected block, got hidden by the rule h"),
        ("t", "allow", "", ""),
        ("t", "hidden", None, "expected hidden, got allow by the default"),
        (None, "block", None, ""),
    ],
)
def test_a_call(tool: Json, expect: Expected, rule: str | None, told: str) -> None:
    case = Case(
        name="n", server="s", method="tools/call", params={"name": tool}, expect=expect, rule=rule
    )
    assert difference(POLICY, case) == told


def test_another_method() -> None:
    case = Case(name="n", server="s", method="x/y", expect="block", rule="m")
    assert difference(POLICY, case) == ""


@pytest.mark.parametrize(
    ("value", "becomes", "expect", "rule", "told"),
    [
        ("x", "x", "allow", None, ""),
        ("x\x00", "x", "allow", None, ""),
        ("x\x00", "x\x00", "allow", None, "the result became 'x'"),
        ("x" * 20, None, "block", "cap", ""),
        ("x" * 20, None, "block", "clean", "expected block by clean, got block by the rule cap"),
        ("x", None, "block", None, "expected block, got allow by the default"),
    ],
)
def test_a_result(
    value: Json, becomes: Json, expect: Expected, rule: str | None, told: str
) -> None:
    case = Case(
        name="n",
        server="s",
        method="tools/call",
        params={"name": "t"},
        expect=expect,
        rule=rule,
        result=ExpectedResult(value=value, becomes=becomes),
    )
    assert difference(POLICY, case) == told


def test_a_list_is_judged_by_its_entries() -> None:
    """By `max_bytes` it would be refused."""
    listed: Json = {"tools": [{"name": "t", "description": "x\u200b"}]}
    becomes: Json = {"tools": [{"name": "t", "description": "x"}]}
    case = Case(
        name="n",
        server="s",
        method="tools/list",
        expect="allow",
        result=ExpectedResult(value=listed, becomes=becomes),
    )
    assert difference(POLICY, case) == ""
