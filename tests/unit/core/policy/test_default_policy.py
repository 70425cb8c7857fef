"""Default policy beside an operator's: which of the two decides."""

import pytest

from mcpwrap.core.policy.compiled import CompiledPolicy, ServerContext, compile_policy
from mcpwrap.core.policy.decision import Decision
from mcpwrap.core.policy.default_policy import short_names, with_default_policy
from mcpwrap.core.policy.explain import explain
from mcpwrap.core.policy.rules import (
    Action,
    ArgumentCondition,
    DisabledDefault,
    Equals,
    LimitsEntry,
    Policy,
    Rule,
    decode,
    digest,
    encode,
    for_server,
)
from mcpwrap.core.protocol.json_value import Json

ALLOW, BLOCK, ASK = Decision.ALLOW, Decision.BLOCK, Decision.NEEDS_APPROVAL
IF_WIDE = (ArgumentCondition("wide", Equals("true")),)
IF_FORCED = (ArgumentCondition("force", Equals("true")),)
LIMITS = LimitsEntry(
    calls=600, identical_calls=20, repeated_calls=50, cool_down_s=30, scope="session"
)
DEFAULT = Policy(
    rules=(
        Rule(name="default.ask", tools=("push",), when=IF_FORCED, action="allow_with_approval"),
        Rule(name="default.stop", tools=("*",), when=IF_WIDE, action="block", only_if_sure=True),
        Rule(name="default.late", tools=("push",), action="allow_with_approval", servers=("x*",)),
    ),
    limits=(LIMITS,),
)
FORCED = {"force": True, "wide": False}
WIDE = {"force": False, "wide": True}
BOTH = {"force": True, "wide": True}
PLAIN = {"force": False, "wide": False}


def own(action: Action, *tools: str, observe: bool = False) -> Policy:
    rule = Rule(name="own", tools=tools, action=action, observe=observe)
    return Policy(rules=(rule,) if tools else ())


def made(policy: Policy, server: str = "s", *, is_hub: bool = False) -> CompiledPolicy:
    return compile_policy(
        with_default_policy(policy, DEFAULT), server, ServerContext(is_hub=is_hub)
    )


@pytest.mark.parametrize(
    ("policy", "arguments", "decision", "rule"),
    [
        # Without a rule of the operator's.
        (Policy(), PLAIN, ALLOW, ""),
        (Policy(), FORCED, ASK, "default.ask"),
        (Policy(), WIDE, BLOCK, "default.stop"),
        (Policy(), BOTH, BLOCK, "default.stop"),  # although the question comes first
        (Policy(), {}, ASK, "default.ask"),  # cannot be judged; `stop` applies only if it is sure
        (Policy(default="block"), FORCED, BLOCK, ""),
        # What the operator blocks stays blocked, by the operator's rule.
        (own("block", "push"), FORCED, BLOCK, "own"),
        (own("block", "*"), WIDE, BLOCK, "own"),
        (own("hide", "push"), FORCED, BLOCK, "own"),
        # What the default policy blocks is blocked, whatever the operator allows.
        (own("allow", "push"), WIDE, BLOCK, "default.stop"),
        (own("allow_with_approval", "push"), WIDE, BLOCK, "default.stop"),
        # An `allow` lifts a question if it names the tool.
        (own("allow", "push"), FORCED, ALLOW, "own"),
        (own("allow", "pu*"), FORCED, ALLOW, "own"),
        (own("allow", "*", "push"), FORCED, ALLOW, "own"),
        (own("allow", "*"), FORCED, ASK, "default.ask"),
        (own("allow", "????"), FORCED, ASK, "default.ask"),
        (own("allow", "*?"), FORCED, ASK, "default.ask"),
        (own("allow", "*", "other"), FORCED, ASK, "default.ask"),  # it names another one
        (own("allow", "push", observe=True), FORCED, ASK, "default.ask"),  # it does not decide
        (own("log", "push"), FORCED, ASK, "default.ask"),
        # The operator's question is asked once.
        (own("allow_with_approval", "push"), FORCED, ASK, "own"),
        (own("allow_with_approval", "*"), FORCED, ASK, "own"),
        # Where it observes, the default policy only notes.
        (Policy(observe=("s",)), FORCED, ALLOW, ""),
        (Policy(observe=("s",)), WIDE, ALLOW, ""),
        (Policy(observe=("other",)), WIDE, BLOCK, "default.stop"),
        # Disabled.
        (Policy(has_default_policy=False), WIDE, ALLOW, ""),
        (Policy(disabled=(DisabledDefault(rule="ask"),)), FORCED, ALLOW, ""),
        (Policy(disabled=(DisabledDefault(rule="ask"),)), WIDE, BLOCK, "default.stop"),
        (Policy(disabled=(DisabledDefault(rule="ask", servers=("s*",)),)), FORCED, ALLOW, ""),
        (
            Policy(disabled=(DisabledDefault(rule="ask", servers=("git",)),)),
            FORCED,
            ASK,
            "default.ask",
        ),
        (Policy(disabled=(DisabledDefault(rule="*"),)), WIDE, ALLOW, ""),
        (Policy(disabled=(DisabledDefault(rule="unknown"),)), WIDE, BLOCK, "default.stop"),
    ],
)
def test_one_of_the_two_decides(
    policy: Policy, arguments: dict[str, bool], decision: Decision, rule: str
) -> None:
    judge = made(policy)
    found = judge.judge("tools/call", {"name": "push", "arguments": {**arguments}})
    assert (found.decision, found.rule) == (decision, rule)
    explained = explain(judge, "tools/call", {"name": "push", "arguments": {**arguments}})
    assert explained.judgement == found
    takes_part = any(one.does.startswith(("applies", "notes")) for one in explained.default_rules)
    assert bool(explained.how) == takes_part


@pytest.mark.parametrize(
    ("tools", "arguments", "in_client"),
    [
        (("push",), FORCED, True),
        (("pu*",), FORCED, True),
        (("*",), FORCED, False),  # a rule for any tool does not speak of what the default asks
        (("*",), PLAIN, True),  # the default policy has no question
    ],
)
def test_the_agents_own_window_answers_for_a_tool_that_the_operators_rule_names(
    tools: tuple[str, ...], arguments: dict[str, bool], *, in_client: bool
) -> None:
    rule = Rule(name="own", tools=tools, action="allow_with_approval", ask_in_client=True)
    judge = made(Policy(rules=(rule,)))
    found = judge.judge("tools/call", {"name": "push", "arguments": {**arguments}})
    assert (found.decision, found.rule, found.in_client) == (ASK, "own", in_client)


@pytest.mark.parametrize(
    ("policy", "arguments", "how"),
    [
        (own("block", "push"), FORCED, "the rule own blocks: default.ask is not reached"),
        (Policy(default="block"), WIDE, "the policy's `default` blocks: default.stop is not"),
        (own("allow", "push"), FORCED, "allows this tool by its name, which lifts the question"),
        (own("allow", "push"), WIDE, "default.stop blocks, although the rule own does not"),
        (own("allow_with_approval", "*"), FORCED, "the rule own asks, so default.ask does not ask"),
        (Policy(), FORCED, "a rule with `tool: push` and `action: allow` would lift that"),
        (Policy(observe=("s",)), FORCED, "under `observe`: default.ask is noted only"),
    ],
)
def test_explain_says_how_they_came_to_the_decision(
    policy: Policy, arguments: dict[str, bool], how: str
) -> None:
    found = explain(made(policy), "tools/call", {"name": "push", "arguments": {**arguments}})
    assert how in found.how
    assert [one.name for one in found.default_rules] == ["default.ask", "default.stop"]


def test_what_observes_is_noted() -> None:
    judge = made(Policy(observe=("s",), rules=own("log", "push").rules))
    found = judge.judge("tools/call", {"name": "push", "arguments": {**BOTH}})
    assert found.notes == ("own", "default.stop would block")
    named = Policy(observe=("s",), rules=own("allow", "push").rules)
    found = made(named).judge("tools/call", {"name": "push", "arguments": {**FORCED}})
    assert found.notes == ()  # it would have been lifted


def test_notes_of_the_operators_rules_stay() -> None:
    found = made(own("log", "*")).judge("tools/call", {"name": "push", "arguments": {**FORCED}})
    assert (found.rule, found.notes) == ("default.ask", ("own",))


def test_other_methods_and_odd_names_are_not_its_business() -> None:
    judge = made(Policy())
    assert judge.judge("resources/read", {"uri": "a://b", "wide": True}).decision is ALLOW
    assert judge.judge("tools/call", {"name": 5}).decision is BLOCK
    assert judge.judge_by_operator("tools/call", {"name": 5}).decision is BLOCK
    assert judge.judge_by_operator("resources/read", {}).decision is ALLOW


def test_a_hub_has_none_and_its_members_do() -> None:
    forced: dict[str, Json] = {"name": "push", "arguments": {**FORCED}}
    assert made(Policy(), is_hub=True).judge("tools/call", forced).decision is ALLOW
    assert made(Policy(), is_hub=True).default_limits_for("push") is None
    assert made(Policy(), is_hub=False).judge("tools/call", forced).decision is ASK


def test_a_server_under_observation_has_no_default_limits() -> None:
    assert made(Policy(observe=("s",))).default_limits_for("push") is None
    assert made(Policy(observe=("other",))).default_limits_for("push") is not None


def test_a_tool_that_no_rule_concerns_has_no_rules() -> None:
    judge = compile_policy(
        Policy(default_rules=DEFAULT.rules[:1], default_limits=DEFAULT.limits), "s"
    )
    assert judge.default_rules_for_tool("pull") == ()
    assert [one.rule.name for one in judge.default_rules_for_tool("push")] == ["default.ask"]


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        (Policy(), LIMITS),
        (Policy(limits=(LimitsEntry(tools=("pull",), calls=1),)), LIMITS),
        (
            Policy(limits=(LimitsEntry(calls=1, identical_calls=9),)),
            LimitsEntry(repeated_calls=50, cool_down_s=30, scope="session"),
        ),
        (
            Policy(limits=(LimitsEntry(repeated_calls=9, cool_down_s=5),)),
            LimitsEntry(calls=600, identical_calls=20, cool_down_s=5, scope="session"),
        ),
        (Policy(limits=(LimitsEntry(calls=1, identical_calls=9, repeated_calls=9),)), None),
        (Policy(disabled=(DisabledDefault(rule="limits"),)), None),
        (Policy(disabled=(DisabledDefault(rule="limits", servers=("s",)),)), None),
        (Policy(disabled=(DisabledDefault(rule="limits", servers=("x",)),)), LIMITS),
        (Policy(disabled=(DisabledDefault(rule="*", servers=("s",)),)), None),
        (Policy(has_default_policy=False), None),
    ],
)
def test_its_limits_yield_to_the_operators(policy: Policy, left: LimitsEntry | None) -> None:
    assert made(policy).default_limits_for("push") == left
    assert made(policy).limits_for("push") == (
        policy.limits[0] if policy.limits and "pull" not in policy.limits[0].tools else None
    )


def test_a_server_gets_what_concerns_it() -> None:
    whole = with_default_policy(
        Policy(disabled=(DisabledDefault(rule="ask", servers=("x1",)),)), DEFAULT
    )
    assert [rule.name for rule in for_server(whole, "x1").default_rules] == [
        "default.stop",
        "default.late",
    ]
    assert [rule.name for rule in for_server(whole, "s").default_rules] == [
        "default.ask",
        "default.stop",
    ]
    for name in ("x1", "s"):  # a session compiles what it was sent
        part = for_server(whole, name)
        assert decode(encode(part)) == part
        assert for_server(part, name) == part


def test_what_a_file_says_of_it_is_a_setting_for_a_server() -> None:
    for policy in (
        Policy(has_default_policy=False),
        Policy(disabled=(DisabledDefault(rule="ask", servers=("s",)),)),
    ):
        assert for_server(policy, "s") != Policy()  # `apply` records the file
    assert (
        for_server(Policy(disabled=(DisabledDefault(rule="a", servers=("x",)),)), "s") == Policy()
    )


def test_a_new_default_policy_has_another_digest() -> None:
    one = with_default_policy(Policy(), DEFAULT)
    other = with_default_policy(Policy(), Policy(rules=DEFAULT.rules[:1], limits=DEFAULT.limits))
    assert len({digest(one), digest(other), digest(Policy())}) == 3
    replaced = Policy(has_default_policy=False)
    assert with_default_policy(replaced, DEFAULT) == replaced


def test_its_parts_have_short_names() -> None:
    assert short_names(DEFAULT) == ("ask", "stop", "late", "limits")
    assert short_names(Policy(rules=DEFAULT.rules)) == ("ask", "stop", "late")
