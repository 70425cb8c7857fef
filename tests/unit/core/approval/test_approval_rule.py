"""Approval rules: a call that differs where nothing was ticked is asked about again."""

import msgspec
import pytest

from mcpwrap.core.approval.approval_rule import (
    ALL_EXACT,
    MAX_DOCUMENT_BYTES,
    MAX_FOR_S,
    MAX_GLOB_CHARS,
    MAX_REQUEST_BYTES,
    MAX_TICKED,
    MAX_TIMES,
    NO_FIXED,
    FixedArguments,
    RuleRequest,
    TickedArgument,
    UnsavableRuleError,
    check,
    covers,
    decoded,
    encoded,
    may_be,
)
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.approval.questions import ITEM, RULES, Ticked, call, rule

NOTE: Json = {"path": "/notes/a", "text": "x"}
ID, PATH = {"id": "*"}, {"path": "/notes/*"}
CALLS: list[tuple[str, Json, Ticked, Json, bool]] = [
    ("the very same call", ITEM, {}, {"id": 5, "list": "groceries"}, True),
    ("nothing ticked, another value", ITEM, {}, {"list": "groceries", "id": 6}, False),
    ("a ticked one may have any value", ITEM, ID, {"list": "groceries", "id": 6}, True),
    ("of any type", ITEM, ID, {"list": "groceries", "id": {"a": [1]}}, True),
    ("or be left out", ITEM, ID, {"list": "groceries"}, True),
    ("another than the ticked one", ITEM, ID, {"list": "work", "id": 5}, False),
    ("a number is no text", ITEM, ID, {"list": 5, "id": 5}, False),
    ("nor the other way", ITEM, {}, {"list": "groceries", "id": "5"}, False),
    ("an argument more", ITEM, ID, {"list": "groceries", "id": 5, "force": True}, False),
    ("one more, ticked, but not in the approved call", ITEM, {"force": "*"},
     {"list": "groceries", "id": 5, "force": True}, False),
    ("one less", ITEM, ID, {"id": 5}, False),
    ("a pattern", NOTE, PATH, {"path": "/notes/b/c", "text": "x"}, True),
    ("that does not match", NOTE, PATH, {"path": "/etc/passwd", "text": "x"}, False),
    ("that leads elsewhere", NOTE, PATH, {"path": "/notes/../etc", "text": "x"}, False),
    ("the approved value, whatever it is", {"path": "/notes/..?x"}, PATH, {"path": "/notes/..?x"},
     True),
    ("another of its kind", {"path": "/notes/..?x"}, PATH, {"path": "/notes/..?y"}, False),
    ("a pattern is for texts", NOTE, {"path": "?"}, {"path": 1, "text": "x"}, False),
    ("a pattern needs a value", NOTE, PATH, {"text": "x"}, False),
    ("no arguments", None, {}, None, True),
    ("arguments where there were none", None, {}, {"id": 5}, False),
    ("a list, which cannot be ticked", [1], {"0": "*"}, [1], True),
    ("another list", [1], {"0": "*"}, [2], False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("approved", "ticked", "arguments", "is_covered"),
    [row[1:] for row in CALLS],
    ids=[row[0] for row in CALLS],
)
def test_calls_that_a_rule_covers(
    approved: Json, ticked: Ticked, arguments: Json, *, is_covered: bool
) -> None:
    assert covers(rule(call(approved), ticked), call(arguments), RULES, NO_FIXED) == is_covered


TEXTS: list[tuple[str, bool]] = [
    ("a/b", True),
    ("a..b", True),
    ("..hidden", True),
    ("hidden..", True),
    ("...", True),
    ("./a", True),
    ("a?b=1#c;d", True),
    ("caf%C3%A9%20100%", True),
    ("%252fa", True),
    ("?to=../a", True),  # a folder above, but of another path, which the pattern leaves open
    ("..", False),
    ("../a", False),
    ("x\\..\\a", False),
    ("%2e%2e/a", False),
    (".%2E/a", False),
    ("..%2fa", False),
    ("..%5Ca", False),
    ("%252e%252e/a", False),
    ("%" + "25" * 5 + "2fa", False),  # decoded further than five times: by whom?
    ("..?a", False),
    ("..%3fa", False),
    ("..#a", False),
    ("..;/a", False),
    (".. ", False),  # which the WHATWG's URL parser strips
    ("%c0%ae%c0%ae/a", False),  # dots in overlong UTF-8
    ("..%00", False),
    ("a\nb", False),
    ("a%0ab", False),
]


@pytest.mark.parametrize(("text", "is_covered"), TEXTS)
def test_a_pattern_is_for_texts_below_its_folder(text: str, *, is_covered: bool) -> None:
    for glob in ("https://h/api/*", "/notes/*"):
        assert may_be(glob, glob.removesuffix("*") + text) == is_covered
    assert may_be("*", text)  # any value is any


ELSEWHERE: list[tuple[dict[str, object], bool]] = [
    ({}, True),
    ({"policy": "another"}, True),  # it is bound to the names of the rules that ask
    ({"agent_uid": 1001}, False),
    ({"server": "sqlite2"}, False),
    ({"method": "prompts/get"}, False),
    ({"target": "t2"}, False),
    ({"definition": "changed"}, False),
]


@pytest.mark.parametrize(("changes", "is_covered"), ELSEWHERE)
def test_a_rule_is_for_one_tool_of_one_agent(
    changes: dict[str, object], *, is_covered: bool
) -> None:
    now = msgspec.structs.replace(call(ITEM), **changes)
    assert covers(rule(call(ITEM), {}), now, RULES, NO_FIXED) == is_covered


def test_other_params_must_stay() -> None:
    saved = rule(call(ITEM, task={"ttl": 5}), ID)
    assert covers(saved, call(ITEM, task={"ttl": 5}), RULES, NO_FIXED)
    assert not covers(saved, call(ITEM, task={"ttl": 6}), RULES, NO_FIXED)
    assert not covers(saved, call(ITEM), RULES, NO_FIXED)


def test_a_tool_whose_definition_had_changed_gets_no_rule() -> None:
    changed = msgspec.structs.replace(call(ITEM), definition="changed")
    assert not covers(rule(changed, {}), changed, RULES, NO_FIXED)
    assert not covers(rule(changed, {}), call(ITEM), RULES, NO_FIXED)


@pytest.mark.parametrize(
    ("asking", "is_covered"),
    [
        (RULES, True),
        (RULES[:1], True),
        ((*RULES, "writing"), False),  # which did not ask about the approved call
        ((), False),
    ],
)
def test_a_rule_answers_the_policy_rules_that_asked(
    asking: tuple[str, ...], *, is_covered: bool
) -> None:
    assert covers(rule(call(ITEM), ID), call(ITEM), asking, NO_FIXED) == is_covered


@pytest.mark.parametrize(
    ("fixed", "is_covered"),
    [
        (NO_FIXED, True),
        (FixedArguments(deciding=("list",), exact=("list",)), True),  # it is as it was
        (FixedArguments(deciding=("id",)), False),
        (FixedArguments(deciding=("id",), exact=("ID",)), False),
        (FixedArguments(exact=(ALL_EXACT,)), False),
    ],
)
def test_what_was_ticked_may_be_what_a_rule_is_about_in_a_later_call(
    fixed: FixedArguments, *, is_covered: bool
) -> None:
    later: Json = {"list": "groceries", "id": "DELETE FROM t"}
    assert covers(rule(call(ITEM), ID), call(later), RULES, fixed) == is_covered
    assert covers(rule(call(ITEM), {}), call(ITEM), RULES, fixed)


def test_a_document_of_another_version_covers_nothing() -> None:
    old = msgspec.structs.replace(rule(call(ITEM), {}), approved='{"agent_uid": 1000}')
    assert not covers(old, call(ITEM), RULES, NO_FIXED)


def test_the_text_of_a_client_is_decoded() -> None:
    awkward = TickedArgument('a"\\/\n\x00\u2028é', "?\U0001f600*")
    for one in (
        RuleRequest(),
        RuleRequest(ticked=(TickedArgument("id"), awkward), for_s=60, times=5, in_session=True),
    ):
        assert decoded(encoded(one)) == one


UNREADABLE = [
    ("", "truncated"),
    ("[]", "Expected `object`"),
    ('{"more":1}', "unknown field"),
    ("\ud800", "surrogates"),
    ('{"ticked":[{"name":"\\ud800"}]}', "truncated"),
    ('{"times":' + "[" * (MAX_REQUEST_BYTES - 9), "Expected `int`"),
    ("é" * (MAX_REQUEST_BYTES // 2 + 1), "over 4096 bytes"),
    # Texts that show one rule, or hide it, and are another.
    ('{"times":1,"times":9999}', "canonical"),
    ('{"ticked":[{"name":"a","glob":"/n/x","glob":"\\u002a"}],"times":1}', "canonical"),
    ('{"ticked":[{"name":"a","glob":"\\u002a"}],"times":1}', "canonical"),
    ('{"t\\u0069mes":1}', "canonical"),
    ('{"times": 1}', "canonical"),
    ('{"times":1}\n', "canonical"),
    ('{"times":1.0}', "Expected `int`"),
    ('{"for_s":0,"times":1}', "canonical"),
    ('{"times":1,"for_s":60}', "canonical"),
]


@pytest.mark.parametrize(("text", "why"), UNREADABLE)
def test_other_texts_are_no_rule(text: str, why: str) -> None:
    with pytest.raises(UnsavableRuleError, match=why):
        decoded(text)


FIXED = FixedArguments(deciding=("Path", "query"), exact=("query",))
SAVED: list[tuple[RuleRequest, FixedArguments, str]] = [
    (RuleRequest(times=1), NO_FIXED, ""),
    (RuleRequest(for_s=MAX_FOR_S, times=MAX_TIMES), NO_FIXED, ""),
    (RuleRequest(in_session=True), NO_FIXED, ""),
    (RuleRequest(), NO_FIXED, "needs a bound"),
    (RuleRequest(for_s=MAX_FOR_S + 1), NO_FIXED, "at most 365 days"),
    (RuleRequest(times=MAX_TIMES + 1), NO_FIXED, "10000 calls"),
    (RuleRequest(for_s=-1, times=5), NO_FIXED, "at most 365 days"),
    (RuleRequest(times=-1, for_s=5), NO_FIXED, "10000 calls"),
    (RuleRequest(times=1, ticked=(TickedArgument("id"),)), FIXED, ""),
    (RuleRequest(times=1, ticked=(TickedArgument("id"), TickedArgument("id"))), FIXED, "twice"),
    (RuleRequest(times=1, ticked=tuple(map(TickedArgument, "a" * MAX_TICKED + "b"))), FIXED,
     "over 32"),
    (RuleRequest(times=1, ticked=(TickedArgument("id", ""),)), FIXED, "1 to 256"),
    (RuleRequest(times=1, ticked=(TickedArgument("id", "x" * (MAX_GLOB_CHARS + 1)),)), FIXED,
     "1 to 256"),
    (RuleRequest(times=1, ticked=(TickedArgument("query", "SELECT *"),)), FIXED, "must stay"),
    (RuleRequest(times=1, ticked=(TickedArgument("QUERY", "SELECT *"),)), FIXED, "must stay"),
    (RuleRequest(times=1, ticked=(TickedArgument("id"),)), FixedArguments(exact=(ALL_EXACT,)),
     "must stay"),
    (RuleRequest(times=1), FixedArguments(exact=(ALL_EXACT,)), ""),
    (RuleRequest(times=1, ticked=(TickedArgument("path"),)), FIXED, "give a pattern"),
    (RuleRequest(times=1, ticked=(TickedArgument("path", "***"),)), FIXED, "give a pattern"),
    (RuleRequest(times=1, ticked=(TickedArgument("path", "/notes/*"),)), FIXED, ""),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "fixed", "why"), SAVED)
def test_rules_that_can_be_saved(wanted: RuleRequest, fixed: FixedArguments, why: str) -> None:
    if not why:
        check(wanted, fixed, b"{}")
        return
    with pytest.raises(UnsavableRuleError, match=why):
        check(wanted, fixed, b"{}")


def test_a_long_call_cannot_be_saved() -> None:
    check(RuleRequest(times=1), NO_FIXED, b"x" * MAX_DOCUMENT_BYTES)
    with pytest.raises(UnsavableRuleError, match="over 65536 bytes"):
        check(RuleRequest(times=1), NO_FIXED, b"x" * (MAX_DOCUMENT_BYTES + 1))
