"""Approval rules in force: bounds by time, count and session."""

import pytest
from msgspec.structs import replace

from mcpwrap.core.approval import rule_book
from mcpwrap.core.approval.approval_rule import ApprovalRule
from mcpwrap.core.approval.rule_book import RuleBook
from tests.unit.core.approval.questions import ITEM, call
from tests.unit.core.approval.questions import rule as approval_rule

RULE = approval_rule(call(ITEM), {})
NOW = 100.0
BOUNDS: list[tuple[ApprovalRule, str, list[bool]]] = [
    (replace(RULE, until=NOW + 1), "12-1", [True, True, True]),
    (replace(RULE, until=NOW), "12-1", [False]),
    (replace(RULE, times=2), "12-1", [True, True, False]),
    (replace(RULE, times=2, until=NOW + 1), "12-1", [True, True, False]),
    (replace(RULE, session="12-1"), "12-1", [True, True]),
    (replace(RULE, session="12-1"), "12-2", [False]),
]


@pytest.mark.parametrize(("rule", "session", "uses"), BOUNDS)
def test_uses_within_the_bounds(rule: ApprovalRule, session: str, uses: list[bool]) -> None:
    book = RuleBook([rule])
    assert [book.use(rule.id, session, NOW) is not None for _ in uses] == uses


def test_the_count_that_is_left() -> None:
    book = RuleBook([replace(RULE, times=3)])
    left = [rule.times if (rule := book.use(RULE.id, "", NOW)) else None for _ in range(4)]
    assert left == [2, 1, 1, None]  # with the last call it is removed, and returned as it was
    assert book.find(RULE.id) is None


def test_rules_of_one_tool() -> None:
    others = [
        replace(RULE, id="a", agent_uid=1001),
        replace(RULE, id="b", server="plain"),
        replace(RULE, id="c", method="prompts/get"),
        replace(RULE, id="d", target="t2"),
    ]
    book = RuleBook([*others, RULE])
    assert book.of_tool(1000, "sqlite", "tools/call", "t") == [RULE]
    assert book.rules() == [*others, RULE]


def test_rules_that_end() -> None:
    late, ended = replace(RULE, id="a", until=NOW), replace(RULE, id="b", session="12-1")
    book = RuleBook([late, ended, replace(RULE, id="c", until=NOW + 1)])
    assert book.expired(NOW) == [late]
    assert book.is_over("") == []
    assert book.is_over("12-1") == [ended]
    assert [rule.id for rule in book.rules()] == ["c"]
    assert book.remove("c") is not None
    assert book.remove("c") is None


def test_rules_are_limited_by_agent_and_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_book, "MAX_RULES", 3)
    monkeypatch.setattr(rule_book, "MAX_RULES_OF_AGENT", 2)
    book = RuleBook()
    for number, uid in enumerate([1000, 1000, 1001]):
        assert not book.is_full(uid)
        book.add(replace(RULE, id=f"{number}", agent_uid=uid))
        assert book.is_full(1000) == (number > 0)
    assert book.is_full(1002)
