"""Files of MCP Sentinel: what is one, and the position of each error."""

import pytest

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.errors import PolicyError
from mcpwrap.config.policy.sentinel.sentinel_file import SentinelRule, parse_sentinel

RULE = "target_tool: t, target_argument: a"


def parsed(text: str) -> tuple[SentinelRule, ...]:
    return parse_sentinel(SourceFile("s.yaml", text.encode()))


@pytest.mark.parametrize("text", ["rules: []", "{}", f"rules: [{{{RULE}, conditions: []}}]"])
def test_a_file_may_have_no_rules_and_a_rule_no_conditions(text: str) -> None:
    assert [rule.conditions for rule in parsed(text)] in ([], [()])


def test_what_is_absent_has_the_value_that_sentinel_assumes() -> None:
    (rule,) = parsed(f"rules: [{{{RULE}}}]")
    assert (rule.action, rule.match_type, rule.name, rule.id) == ("block", "all", "", "")


# The `«` marks the position of the flaw, and is not part of the file.
FLAWS: list[tuple[str, str]] = [
    ("«[]", "E-POLICY-TYPE"),
    ("«rulez: []", "E-POLICY-UNKNOWN-KEY"),
    ("rules: []\n«circuit_breaker: {}", "E-POLICY-UNKNOWN-KEY"),
    ("rules: «&a []", "E-POLICY-YAML-FEATURE"),
    ("rules: [«5]", "E-POLICY-TYPE"),
    ("rules: [«{target_tool: t}]", "E-POLICY-SENTINEL-INCOMPLETE"),
    ("rules: [«{target_argument: a}]", "E-POLICY-SENTINEL-INCOMPLETE"),
]
IN_RULE: list[tuple[str, str]] = [
    ("«priority: 1", "E-POLICY-UNKNOWN-KEY"),
    ("action: «deny", "E-POLICY-CHOICE"),
    ("match_type: «none", "E-POLICY-CHOICE"),
    ("name: «5", "E-POLICY-TYPE"),
    ("conditions: «{}", "E-POLICY-TYPE"),
    ("conditions: [«5]", "E-POLICY-TYPE"),
    ("conditions: [«{operator: regex}]", "E-POLICY-SENTINEL-INCOMPLETE"),
    ("conditions: [{operator: «like, value: x}]", "E-POLICY-CHOICE"),
    ("conditions: [{operator: equals, value: «5}]", "E-POLICY-TYPE"),
    ("conditions: [{operator: equals, value: x, ignore_case: «yes}]", "E-POLICY-YAML-AMBIGUOUS"),
    ("conditions: [{operator: equals, value: x, «negate: true}]", "E-POLICY-UNKNOWN-KEY"),
]
FLAWS += [(f"rules: [{{{RULE}, {marked}}}]", code) for marked, code in IN_RULE]


@pytest.mark.parametrize(("marked", "code"), FLAWS)
def test_a_flaw_has_its_position(marked: str, code: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parsed(marked.replace("«", ""))
    before = marked[: marked.index("«")]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    found = [(flaw.code, flaw.mark.line, flaw.mark.column) for flaw in caught.value.flaws]
    assert found == [(code, line, column)]


def test_every_flaw_is_found_in_one_pass() -> None:
    with pytest.raises(PolicyError) as caught:
        parsed("rules: [{target_tool: t, action: deny, conditions: [{value: x}]}]\nmode: strict")
    assert [flaw.mark.line for flaw in caught.value.flaws] == [1, 1, 1, 2]
