"""Approval rules on the page: ticked arguments, the rule in words, saved, listed, revoked."""

import html
import re

import msgspec
import pytest
from msgspec.structs import replace

from mcpwrap.core.approval.approval_rule import ApprovalRule, RuleRequest, TickedArgument
from mcpwrap.core.approval.document import Question, document
from mcpwrap.core.wire.approval_socket import RefusedReply, Scope, Verdict
from tests.unit.as_web.browser import Answer, Browser
from tests.unit.as_web.scripted_gate import AGENT_UID, OTHERS_UID, PASSWORD, ScriptedGate, question

CALL = replace(question({"path": "/notes/a.md", "sql": "DROP x", "n": 1}), definition="")
WHERE = "/approval/A1/rule"


@pytest.fixture
def waiting(gate: ScriptedGate) -> ScriptedGate:
    gate.deciding, gate.exact = ("path",), ("sql",)
    gate.wait("A1", CALL)
    return gate


def rule(id_: str, agent_uid: int = AGENT_UID, approved: Question = CALL) -> ApprovalRule:
    return ApprovalRule(
        id=id_, agent_uid=agent_uid, server="sqlite", method="tools/call", target="write_query",
        answers=("ask-before-delete",), approved=document(approved).decode(),
        ticked=(TickedArgument("path", "/notes/*"),), by="carol (page)", made_at=1.79e9,
        until=1.79e9 + 3600, times=7, session="1-1",
    )  # fmt: skip


def describe(browser: Browser, **fields: str) -> Answer:
    shown = browser.get(WHERE)
    assert shown.status == 200
    return browser.post(WHERE, shown.fields | {"for": "3600", "calls": ""} | fields)


def test_spaces_of_a_value_are_shown(logged_in: Browser, gate: ScriptedGate) -> None:
    gate.wait("A1", replace(question({"path": "a  b", "n": 1}), definition=""))
    style = logged_in.get("/static/page.css").text
    [kept] = re.findall(r"^(.*) \{ white-space: pre-wrap; \}", style, re.MULTILINE)
    assert kept.split(", ") == ["pre", "code", "dd"]
    assert "<code>&#34;a  b&#34;</code>" in logged_in.get(WHERE).text
    words = describe(logged_in).text
    assert "<dd>&#34;a  b&#34;, exactly</dd>" in words
    for page in (words, logged_in.get("/approval/A1").text):
        assert not re.search(r"<(?:dd|code)>\s", page)  # of the page itself


def test_a_rule_is_ticked_read_in_words_and_saved(
    logged_in: Browser, waiting: ScriptedGate
) -> None:
    assert f'href="{WHERE}"' in logged_in.get("/approval/A1").text
    shown = logged_in.get(WHERE)
    # The places are those of the names in order: n, path, sql.
    assert re.search(r'name="glob.1"[^>]*value="/notes/\*"', shown.text)
    assert re.search(r'name="vary.2" value="1" disabled', shown.text)
    assert "decides what the call does: it must stay" in shown.said
    assert "* is any text and ? any character" in shown.said
    more = {"vary.0": "1", "glob.0": "*", "vary.1": "1", "glob.1": "/notes/*"}
    words = describe(logged_in, **more, calls="20", session="1")
    said = html.unescape(words.said)
    assert words.status == 200
    assert "In force for 1 hour, 20 times, in session s-1 alone" in said
    assert 'n any value, or none path a text like /notes/* sql "DROP x", exactly' in said
    assert waiting.decided == []
    fields = words.fields | {"password": PASSWORD.decode(), "reason": "often"}
    assert logged_in.post("/approval/A1", fields).headers["location"] == "/"
    (decided,) = waiting.decided
    assert (decided.verdict, decided.scope, decided.times) == (Verdict.APPROVE, Scope.RULE, 1)
    assert msgspec.json.decode(decided.rule, type=RuleRequest) == RuleRequest(
        ticked=(TickedArgument("n", "*"), TickedArgument("path", "/notes/*")),
        for_s=3600,
        times=20,
        in_session=True,
    )


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"for": "0"}, 400, "needs a bound"),
        ({"for": "7"}, 400, "choose how long"),
        ({"calls": "x"}, 400, "as a number"),
        ({"calls": "99999"}, 400, "10000 calls"),
        ({"vary.1": "1", "glob.1": "*"}, 400, "give a pattern for it"),
        ({"vary.1": "1", "glob.1": ""}, 400, "give a pattern for it"),
        ({"vary.1": "1", "glob.1": "/etc/*"}, 400, "of this call is not like"),
        ({"vary.2": "1", "glob.2": "DROP*"}, 400, "it must stay"),
        ({"digest": "0" * 64}, 409, "another call by now"),
        ({"token": "x"}, 403, "this form has expired"),
    ],
)
def test_what_cannot_be_saved_says_why(
    logged_in: Browser, waiting: ScriptedGate, fields: dict[str, str], status: int, said: str
) -> None:
    refused = describe(logged_in, **fields)
    assert (refused.status, said in html.unescape(refused.said)) == (status, True), refused.said
    assert describe(logged_in).status == 200  # the twin
    assert waiting.decided == []


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"times":1,"x":1}', '{"times":1,"times":2}', '{"times":' + "1" * 5000 + "}"],
)
def test_a_form_without_a_valid_rule_saves_none(
    logged_in: Browser, waiting: ScriptedGate, text: str
) -> None:
    fields = describe(logged_in).fields | {"password": PASSWORD.decode(), "reason": ""}
    assert logged_in.post("/approval/A1", fields | {"rule": text}).status == 400
    assert waiting.decided == []
    assert logged_in.post("/approval/A1", fields).status == 303


def test_a_call_of_a_changed_tool_is_no_rule(logged_in: Browser, gate: ScriptedGate) -> None:
    gate.wait("A1", question({"a": 1}))
    assert "cannot be approved as a rule" in logged_in.get(WHERE).said
    token = logged_in.get("/").fields["token"]
    refused = describe(logged_in, token=token, digest=gate.digest_of("A1"))
    assert (refused.status, "changed the tool" in refused.said) == (400, True)


def test_a_call_that_is_gone_is_no_rule(logged_in: Browser, waiting: ScriptedGate) -> None:
    fields = logged_in.get(WHERE).fields
    waiting.waiting.clear()
    assert logged_in.get(WHERE).status == 404
    assert logged_in.post(WHERE, fields).status == 404


def test_rules_are_listed_and_revoked(logged_in: Browser, gate: ScriptedGate) -> None:
    assert "No approval was saved as a rule" in logged_in.get("/rules").said
    gate.rules = [rule("r1"), replace(rule("r2"), approved="{}", session="")]
    shown = logged_in.get("/rules")
    assert "path a text like /notes/*" in shown.said
    assert "7 times, in session 1-1 alone" in shown.said
    assert "of another version" in shown.said
    token = {"token": shown.fields["token"]}
    assert logged_in.post("/rules/r1", {"token": "x"}).status == 403
    assert logged_in.get("/rules/r1").status in {404, 405}
    gate.refusal = RefusedReply(code="gone", why="no such rule")
    assert logged_in.post("/rules/r1", token).status == 410
    gate.refusal = None
    assert len(gate.rules) == 2
    assert logged_in.post("/rules/r1", token).headers["location"] == "/rules"
    assert [one.id for one in gate.rules] == ["r2"]
    assert "rule r1 is revoked" in logged_in.get("/rules").said


def test_rules_of_others_are_not_seen(browser: Browser, gate: ScriptedGate) -> None:
    gate.rules = [rule("r1"), rule("r2", OTHERS_UID)]
    browser.log_in("alice")
    shown = browser.get("/rules")
    assert ("rule r1" in shown.said, "rule r2" in shown.said) == (True, False)
    token = {"token": shown.fields["token"]}
    assert browser.post("/rules/r2", token).status == 404
    assert browser.post("/rules/r1", token).status == 303
    assert [one.id for one in gate.rules] == ["r2"]
