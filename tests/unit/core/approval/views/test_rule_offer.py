"""Offer of a rule: proposed patterns, arguments that stay, calls that no rule covers."""

import pytest
from msgspec.structs import replace

from mcpwrap.core.approval.approval_rule import (
    MAX_DOCUMENT_BYTES,
    FixedArguments,
    RuleRequest,
    TickedArgument,
    UnsavableRuleError,
)
from mcpwrap.core.approval.views.rule_offer import (
    OfferedArgument,
    check,
    offered,
    suggested_glob,
    why_unsavable,
)
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.approval.questions import question

ASKED = question({"name": "t", "arguments": {"path": "/a/b/c.md", "sql": "x", "id": 5, "who": "w"}})
FIXED = FixedArguments(("path", "who", "sql"), ("sql",))


@pytest.mark.parametrize(
    ("value", "glob"),
    [
        ("/a/b/c.md", "/a/b/*"),
        ("a/b", "a/*"),
        ("/a", "*"),  # the same folder would be all of the machine
        ("https://host:8/x/y?q=1", "https://host:8/*"),
        ("https://host", "*"),  # not like `https://host/*`
        ("/a/../b", "*"),  # no pattern is for it
        ("/a/*/b", "*"),
        ("/home/alice/????/x", "*"),  # as a pattern it is for `.ssh`, too
        ("/home/alice/x/????", "/home/alice/x/*"),
        ("/notes/*.md", "/notes/*"),
        ("https://h*/x", "*"),
        ("https://h/????/x", "https://h/*"),
        ("word", "*"),
        (5, "*"),
        ("/" + "a" * 300 + "/b", "*"),
    ],
)
def test_a_pattern_is_of_the_same_folder_or_origin(value: Json, glob: str) -> None:
    assert suggested_glob(value) == glob


def test_the_offer_says_what_must_stay() -> None:
    why = "'sql' decides what the call does: it must stay"
    assert offered(ASKED, FIXED) == [
        OfferedArgument("id", "5", "*", "", needs_pattern=False),
        OfferedArgument("path", '"/a/b/c.md"', "/a/b/*", "", needs_pattern=True),
        OfferedArgument("sql", '"x"', "", why, needs_pattern=True),
        OfferedArgument("who", '"w"', "", "", needs_pattern=True),
    ]
    assert offered(question({"name": "t"}), FIXED) == []


def test_some_calls_are_no_rule() -> None:
    assert why_unsavable(ASKED) == ""
    assert "calls of tools" in why_unsavable(replace(ASKED, method="resources/read"))
    assert "changed the tool" in why_unsavable(replace(ASKED, definition="d"))
    long = question({"name": "t", "arguments": {"a": "x" * MAX_DOCUMENT_BYTES}})
    assert "bytes" in why_unsavable(long)


@pytest.mark.parametrize(
    ("ticked", "why"),
    [
        (TickedArgument("none"), "has no argument"),
        (TickedArgument("path", "/b/*"), "is not like"),
        (TickedArgument("path"), "give a pattern"),
        (TickedArgument("sql", "x*"), "must stay"),
    ],
)
def test_a_rule_that_is_none_says_why(ticked: TickedArgument, why: str) -> None:
    with pytest.raises(UnsavableRuleError, match=why):
        check(RuleRequest(ticked=(ticked,), times=1), ASKED, FIXED)


def test_a_rule_covers_its_own_call() -> None:
    check(RuleRequest(ticked=(TickedArgument("path", "/a/*"),), times=1), ASKED, FIXED)
    with pytest.raises(UnsavableRuleError, match="changed the tool"):
        check(RuleRequest(times=1), replace(ASKED, definition="d"), FIXED)
