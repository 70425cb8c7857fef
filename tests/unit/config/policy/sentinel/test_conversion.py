"""Policies of MCP Sentinel, converted: each call is decided as Sentinel decides it."""

import fnmatch
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.errors import PolicyError, SourcePosition
from mcpwrap.config.policy.parse import parse_with_warnings
from mcpwrap.config.policy.sentinel.conversion import (
    USUAL_CALLS,
    ConvertedPolicy,
    convert,
    quoted,
)
from mcpwrap.config.policy.sentinel.sentinel_file import (
    SentinelCondition,
    SentinelRule,
    parse_sentinel,
)
from mcpwrap.config.policy.yaml_scalars import text_of
from mcpwrap.config.policy.yaml_tree import Scalar, read_tree
from mcpwrap.core.policy.compiled import CALL, CompiledPolicy, compile_policy
from mcpwrap.core.policy.rules import Policy
from mcpwrap.core.protocol.json_value import Json

SHARED = Path(__file__).parents[4] / "shared/sentinel/security_policy.yaml"
MARK = SourcePosition("s.yaml", 1, 1)


def rules_of(text: str) -> tuple[SentinelRule, ...]:
    return parse_sentinel(SourceFile("s.yaml", text.encode()))


def converted(text: str, server: str = "", calls: str = "") -> ConvertedPolicy:
    return convert(rules_of(text), server=server, calls=calls)


def policy_of(found: ConvertedPolicy) -> Policy:
    policy, warnings = parse_with_warnings([SourceFile("o.yaml", found.text.encode())])
    assert warnings == []
    return policy


def decided(compiled: CompiledPolicy, tool: str, arguments: Json) -> tuple[str, str]:
    judgement = compiled.judge(CALL, {"name": tool, "arguments": arguments})
    return judgement.decision.value, judgement.rule or ""


SELECT = "SELECT * FROM users"
# Tool, arguments, and what the policy in tests/shared/sentinel decides by which rule.
CASES: list[tuple[str, Json, str, str]] = [
    ("read_query", {"query": SELECT}, "block", "sql-exfiltration"),
    ("read_query", {"query": "select * from users"}, "block", "sql-exfiltration"),
    ("read_query", {"query": f"{SELECT} LIMIT 10"}, "allow", ""),
    ("read_query", {"query": f"{SELECT} limit 10"}, "allow", ""),
    # An argument that is absent: the next rule. So is a call without arguments.
    ("read_query", {}, "allow", ""),
    ("read_query", {"sql": SELECT}, "allow", ""),
    ("read_query", {"query": None}, "allow", ""),  # ends the session of Sentinel
    ("evaluate", {}, "allow", ""),
    ("evaluate", {"code": ""}, "block", "No-evaluation"),
    ("evaluate", {"code": 5}, "block", "No-evaluation"),
    # One of two conditions is enough.
    ("write_query", {"query": "DELETE FROM t"}, "needs approval", "Destructive-SQL-1"),
    ("write_query", {"query": "drop table t"}, "needs approval", "Destructive-SQL-2"),
    ("write_query", {"query": "CREATE TABLE t (a)"}, "allow", ""),
    # The order decides, and `log` goes on.
    ("report_a", {"query": "SELECT * FROM reports\n"}, "allow", "reports"),
    ("report_a", {"query": f"{SELECT};"}, "block", "sql-exfiltration"),
    ("other", {"query": "SELECT * FROM reports"}, "block", "sql-exfiltration"),
    ("t", {"query": "INSERT INTO t SELECT 1"}, "block", "sql-exfiltration"),
    ("t", {"query": "INSERT INTO t VALUES (1)"}, "allow", ""),
    # A name with a dot is one name.
    ("read_file", {"file.path": "/etc/shadow"}, "block", "Secrets-file"),
    ("read_file", {"file": {"path": "/etc/shadow"}}, "allow", ""),
    ("read_file", {"file.path": "/etc/passwd"}, "allow", ""),
    # Stricter than Sentinel, whose session a number ends: what cannot be judged.
    ("read_query", {"query": 5}, "block", "sql-exfiltration"),
    ("read_query", {"query": f"{SELECT} LIMIT 5", "Query": SELECT}, "block", "sql-exfiltration"),
]


@pytest.mark.parametrize(("tool", "arguments", "decision", "rule"), CASES)
def test_the_rules_of_sentinel(tool: str, arguments: Json, decision: str, rule: str) -> None:
    found = policy_of(converted(SHARED.read_text(), calls=USUAL_CALLS))
    assert decided(compile_policy(found, "any"), tool, arguments) == (decision, rule)


def test_the_circuit_breaker() -> None:
    found = policy_of(converted(SHARED.read_text(), "sqlite*", USUAL_CALLS))
    limits = compile_policy(found, "sqlite-1").limits_for("read_query")
    assert limits is not None
    assert (limits.calls, limits.calls_window_s) == (100, 60)
    assert compile_policy(found, "git").limits_for("read_query") is None
    assert policy_of(converted(SHARED.read_text())).limits == ()  # MCP_CIRCUIT_BREAKER=false


def test_rules_are_for_the_servers_that_are_given() -> None:
    found = policy_of(converted(SHARED.read_text(), "sqlite*"))
    assert {rule.servers for rule in found.rules} == {("sqlite*",)}
    assert decided(compile_policy(found, "git"), "read_query", {"query": SELECT})[0] == "allow"


def test_the_agent_is_told_what_the_rule_is_for() -> None:
    found = policy_of(converted(SHARED.read_text()))
    messages = {rule.name: rule.message for rule in found.rules}
    assert messages["sql-exfiltration"] == "SELECT without LIMIT is not allowed. Add a LIMIT."
    assert messages["reports"] == ""


def sentinel(rules: Sequence[SentinelRule], tool: str, arguments: dict[str, str]) -> str:
    """Return what Sentinel decides: the first rule with the argument whose conditions hold."""
    for rule in rules:
        text = arguments.get(rule.argument)
        if text is None or not fnmatch.fnmatchcase(tool, rule.tool):
            continue
        truths = [sentinel_holds(one, text) for one in rule.conditions]
        if (all if rule.match_type == "all" else any)(truths) and rule.action != "log":
            return rule.action
    return "allow"


def sentinel_holds(condition: SentinelCondition, text: str) -> bool:
    value = condition.value
    if condition.operator == "regex":
        flags = re.IGNORECASE if condition.ignores_case else 0
        return re.search(value, text, flags) is not None
    if condition.ignores_case:
        value, text = value.upper(), text.upper()
    outcome = {
        "contains": value in text,
        "not_contains": value not in text,
        "equals": value == text,
    }
    return outcome[condition.operator]


WORDS = st.sampled_from(
    ["", "a", "A", "b.", "(", "a|b", "'", '"', "\n", "é", "#", ": ", "\\", "\x7f"]
)
CONDITIONS = st.builds(
    SentinelCondition,
    st.just(MARK),
    st.sampled_from(["contains", "not_contains", "equals"]),
    st.lists(WORDS, max_size=3).map("".join),
    st.booleans(),
) | st.builds(
    SentinelCondition,
    st.just(MARK),
    st.just("regex"),
    st.sampled_from(["a", "^a", "b$", "a|b", "[^a]", ".", "^$", "'#"]),
    st.booleans(),
)
RULES = st.builds(
    SentinelRule,
    mark=st.just(MARK),
    tool_mark=st.just(MARK),
    id=st.sampled_from(["", "one", "on"]),
    name=st.sampled_from(["A rule", "default.x", "é\n- b", "5"]),
    description=st.sampled_from(["", "Why:\n'not'", "\x1b[2J"]),
    tool=st.sampled_from(["*", "t", "t?", "on"]),
    argument=st.sampled_from(["x", "x.y", "on", "a'b", 'q"']),
    conditions=st.lists(CONDITIONS, max_size=3).map(tuple),
    match_type=st.sampled_from(["all", "any"]),
    action=st.sampled_from(["block", "allow", "log", "allow_with_approval"]),
)
DECISIONS = {"block": "block", "allow": "allow", "allow_with_approval": "needs approval"}


@given(
    st.lists(RULES, max_size=4),
    st.sampled_from(["t", "ts", "on", "other"]),
    st.dictionaries(
        st.sampled_from(["x", "x.y", "on", "a'b", 'q"']), st.lists(WORDS, max_size=4).map("".join)
    ),
)
def test_each_call_with_text_is_decided_as_by_sentinel(
    rules: list[SentinelRule], tool: str, arguments: dict[str, str]
) -> None:
    compiled = compile_policy(policy_of(convert(rules, server="", calls="")), "s")
    expected = DECISIONS[sentinel(rules, tool, arguments)]
    assert decided(compiled, tool, dict(arguments))[0] == expected


RULE = "target_tool: t, target_argument: a"


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("«target_tool: '[ab]_*', target_argument: a", "E-POLICY-GLOB"),
        ("«target_tool: '', target_argument: a", "E-POLICY-GLOB"),
        (f"{RULE}, conditions: [{{operator: regex, «value: '(?=a)'}}]", "E-POLICY-REGEX"),
        (f"{RULE}, conditions: [{{operator: regex, «value: '('}}]", "E-POLICY-SENTINEL-REGEX"),
    ],
)
def test_what_cannot_be_converted_has_its_position(rule: str, code: str) -> None:
    text = f"rules: [{{{rule}}}]"
    with pytest.raises(PolicyError) as caught:
        converted(text.replace("«", ""))
    (flaw,) = caught.value.flaws
    assert (flaw.code, flaw.mark.column) == (code, text.index("«") + 1)


@pytest.mark.parametrize(
    ("rule", "codes"),
    [
        (f"{RULE}", ["E-POLICY-SENTINEL-NO-NAME"]),
        (f"{RULE}, name: a", []),
        (f"{RULE}, action: allow", []),
        (f"{RULE}, action: allow_with_approval", []),
        (f"{RULE}, name: a, match_type: any", ["E-POLICY-SENTINEL-NO-EFFECT"]),
        (
            rf"{RULE}, name: a, conditions: [{{operator: regex, value: '\bDROP'}}]",
            ["E-POLICY-SENTINEL-ASCII"],
        ),
        (rf"{RULE}, name: a, conditions: [{{operator: contains, value: '\bDROP'}}]", []),
    ],
)
def test_what_differs_is_a_warning(rule: str, codes: list[str]) -> None:
    found = converted(f"rules: [{{{rule}}}]")
    assert [warning.code for warning in found.warnings] == codes
    assert len(policy_of(found).rules) == (0 if "any" in rule else 1)


def test_names_are_valid_and_each_is_there_once() -> None:
    named = ("{id: one, %s}", "{name: One two!, %s}", "{name: One two?, %s}", "{name: Über, %s}",
             "{%s}", "{id: default, %s}", "{id: default.x, %s}", "{name: '日本', %s}",
             "{id: %s, %%s}" % ("x" * 70), "{id: %s, %%s}" % ("x" * 80))  # fmt: skip
    text = "rules: [" + ", ".join(one % RULE for one in named) + "]"
    names = [rule.name for rule in policy_of(converted(text)).rules]
    assert names == ["one", "One-two", "One-two-2", "Uber", "rule-5", "rule-6", "x", "rule-8",
                     "x" * 64, "x" * 62 + "-2"]  # fmt: skip


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=9))
def test_a_text_is_read_as_it_was_written(text: str) -> None:
    tree = read_tree("f", quoted(text).encode(), [])
    assert isinstance(tree, Scalar)
    assert text_of(tree) == text
