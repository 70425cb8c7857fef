"""Refusals to an agent: each has one reason, what would pass, who may change it, and a code."""

import msgspec
import pytest
from msgspec.structs import replace

from mcpwrap.core.gate import error_responses
from mcpwrap.core.gate.error_responses import META_KEY, CallCode, Refusal
from mcpwrap.core.gate.gate import Gate, ToAgent
from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.gate.ports import (
    NO_APPROVALS,
    ApprovalRequest,
    ApprovalUnavailable,
    PinRefusal,
    PolicyOwner,
)
from mcpwrap.core.gate.session import SessionState
from mcpwrap.core.policy.decision import Decision, Judgement, LimitExceeded
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.methods import ProtocolEra
from tests.unit.core.scripted import ScriptedAudit, ScriptedLimits, ScriptedPolicy

ROOT, USER = PolicyOwner("orders"), PolicyOwner("orders", is_user=True)
BLOCKED = Judgement(
    Decision.BLOCK, "no-select", "Add a LIMIT.", hit="query: SELECT * FROM t, which has no LIMIT"
)
BARE = Judgement(Decision.BLOCK, "no-drop")
DEFAULT = Judgement(Decision.BLOCK, message="no rule allows it")
OF_MCP = Judgement(Decision.BLOCK, message="A key is a variant spelling of an MCP key.")
SHIPPED = Judgement(Decision.BLOCK, "default.force-push", "A plain `git push` passes.")
ASKS = Judgement(Decision.NEEDS_APPROVAL, "writes", "Look at the WHERE.")
ASKS_SHIPPED = Judgement(Decision.NEEDS_APPROVAL, "default.sql-drop", "Drops or truncates.")
NO_APPROVER = NO_APPROVALS.ask(
    1,
    ApprovalRequest(
        method="m", target="t", definition="", params={}, rule="r", message="", expires_s=1.0
    ),
)
NOBODY = ApprovalUnavailable(
    "no account can approve calls of alice",
    remedy="Root sets up an approver: `sudo usermod -aG mcpwrap-approvers USER`.",
)
PAUSED = ApprovalUnavailable("paused: 5 requests were denied; retry in 600 s", "paused")
WAS_DENIED = ApprovalUnavailable("denied by bob (web, password): No.", "denied")
NO_OTHER_WAY = "Do not do the same in another way."
EXPLAIN = (
    "Root can change the policy in /etc/mcpwrap; "
    "`mcpwrap policy explain orders TOOL ARGUMENTS` shows what applies."
)
NOT_ASKED = f"This is not a denial: no person was asked. {NO_OTHER_WAY} Tell your user."


def session_of(owner: PolicyOwner | None) -> SessionState:
    return SessionState(
        ScriptedPolicy(), ScriptedLimits(), ScriptedAudit(), NO_APPROVALS, owner=owner
    )


AT_ROOT, AT_USER = session_of(ROOT), session_of(USER)


def limit(kind: str, why: str = "120 calls in 60 s") -> LimitExceeded:
    return msgspec.convert({"why": why, "retry_after_s": 2.1, "kind": kind}, LimitExceeded)


@pytest.mark.parametrize(
    ("refusal", "code", "lines", "fields"),
    [
        pytest.param(
            error_responses.blocked(AT_ROOT, BLOCKED),
            "E-CALL-BLOCKED",
            [
                "Refused by mcpwrap (rule no-select). Add a LIMIT.",
                "The rule applies to query: SELECT * FROM t, which has no LIMIT",
                f"{NO_OTHER_WAY} Change the request as the rule says, or tell your user.",
                EXPLAIN,
            ],
            {"rule": "no-select", "argument": "query: SELECT * FROM t, which has no LIMIT"},
            id="a rule of root's",
        ),
        pytest.param(
            error_responses.blocked(AT_USER, BARE),
            "E-CALL-BLOCKED",
            [
                "Refused by mcpwrap (rule no-drop).",
                f"{NO_OTHER_WAY} Tell your user if it is needed.",
                "Your user can change the policy of `mcpwrap run`: ~/.config/mcpwrap/policy.yaml",
            ],
            {"rule": "no-drop"},
            id="a rule of the user's, without a message",
        ),
        pytest.param(
            error_responses.blocked(AT_ROOT, SHIPPED),
            "E-CALL-BLOCKED",
            [
                "Refused by mcpwrap (rule default.force-push). A plain `git push` passes.",
                f"{NO_OTHER_WAY} Change the request as the rule says, or tell your user.",
                (
                    "Root can disable the rule: "
                    "`sudo mcpwrap policy default disable force-push --server orders`"
                ),
            ],
            {"rule": "default.force-push"},
            id="a default rule",
        ),
        pytest.param(
            error_responses.blocked(AT_USER, SHIPPED),
            "E-CALL-BLOCKED",
            [
                "Refused by mcpwrap (rule default.force-push). A plain `git push` passes.",
                f"{NO_OTHER_WAY} Change the request as the rule says, or tell your user.",
                (
                    "Your user can disable the rule: "
                    "`mcpwrap policy default disable force-push --server orders --user`"
                ),
            ],
            {"rule": "default.force-push"},
            id="a default rule in mcpwrap run",
        ),
        pytest.param(
            error_responses.blocked(AT_ROOT, DEFAULT),
            "E-CALL-BLOCKED",
            [
                "Refused by mcpwrap (no rule allows it).",
                f"{NO_OTHER_WAY} Tell your user if it is needed.",
                EXPLAIN,
            ],
            {},
            id="default: block",
        ),
        pytest.param(
            error_responses.blocked(AT_ROOT, OF_MCP),
            "E-CALL-BLOCKED",
            ["Refused by mcpwrap: A key is a variant spelling of an MCP key."],
            {},
            id="no policy, but MCP itself",
        ),
        pytest.param(
            error_responses.blocked(AT_ROOT, ASKS),
            "E-CALL-NOBODY",
            [
                "Refused by mcpwrap (needs approval, rule writes). Look at the WHERE.",
                f"{NO_OTHER_WAY} Change the request as the rule says, or tell your user.",
                EXPLAIN,
            ],
            {"rule": "writes"},
            id="what cannot wait: a server's request",
        ),
        pytest.param(
            error_responses.result_blocked(AT_ROOT, BARE),
            "E-RESULT-BLOCKED",
            [
                "Refused by mcpwrap (rule no-drop).",
                "The server has had the request: only its response is refused. Do not repeat it.",
                EXPLAIN,
            ],
            {"rule": "no-drop"},
            id="a result",
        ),
        pytest.param(
            error_responses.result_blocked(AT_ROOT, OF_MCP),
            "E-RESULT-BLOCKED",
            [
                "Refused by mcpwrap: A key is a variant spelling of an MCP key.",
                "The server has had the request: only its response is refused. Do not repeat it.",
            ],
            {},
            id="a result that is not MCP",
        ),
        pytest.param(
            error_responses.limited(AT_ROOT, limit("rate")),
            "E-CALL-RATE",
            [
                "Refused by mcpwrap: 120 calls in 60 s; retry in 3 s.",
                "Other tools pass now, and this one in 3 s.",
                "Root can change `limits` for orders in /etc/mcpwrap/policy.yaml",
            ],
            {"retry_after_s": 3},
            id="rate",
        ),
        pytest.param(
            error_responses.limited(AT_USER, limit("loop", "20 identical calls")),
            "E-CALL-LOOP",
            [
                "Refused by mcpwrap: 20 identical calls; retry in 3 s.",
                "The same call brings nothing new: another call passes now.",
                "Your user can change `limits` in ~/.config/mcpwrap/policy.yaml",
            ],
            {"retry_after_s": 3},
            id="loop",
        ),
        pytest.param(
            error_responses.limited(AT_ROOT, replace(limit("rate"), of_default_policy=True)),
            "E-CALL-RATE",
            [
                "Refused by mcpwrap: 120 calls in 60 s; retry in 3 s.",
                "Other tools pass now, and this one in 3 s.",
                (
                    "Root can disable the rule: "
                    "`sudo mcpwrap policy default disable limits --server orders`"
                ),
            ],
            {"retry_after_s": 3},
            id="the default policy's rate",
        ),
        pytest.param(
            error_responses.limited(AT_ROOT, limit("failures", "10 failures in a row")),
            "E-CALL-FAILURES",
            [
                "Refused by mcpwrap: 10 failures in a row; retry in 3 s.",
                "The tool keeps failing: other tools pass now, and this one in 3 s.",
                "Root can change `limits` for orders in /etc/mcpwrap/policy.yaml",
            ],
            {"retry_after_s": 3},
            id="failures",
        ),
        pytest.param(
            error_responses.held(AT_ROOT, ASKS, "a1"),
            "E-CALL-HELD",
            [
                (
                    "Held by mcpwrap. Pending approval a1: a person has been asked. "
                    "Send the same request again to continue."
                ),
                "The rule says: Look at the WHERE.",
                (
                    f"Nothing was done yet. {NO_OTHER_WAY} Your user sees it with "
                    "`mcpwrap approvals show a1`."
                ),
            ],
            {"rule": "writes", "approval": "a1"},
            id="held",
        ),
        pytest.param(
            error_responses.denied(AT_ROOT, ASKS, "denied by bob (command): No.", "a1"),
            "E-CALL-DENIED",
            [
                "Refused by mcpwrap (denied by bob (command): No.). Approval a1, rule writes.",
                "The rule says: Look at the WHERE.",
                f"A person has decided this: do not send it again. {NO_OTHER_WAY}",
            ],
            {"rule": "writes", "approval": "a1"},
            id="denied by a person",
        ),
        pytest.param(
            error_responses.unasked(AT_ROOT, ASKS, WAS_DENIED),
            "E-CALL-DENIED",
            [
                (
                    "Refused by mcpwrap (needs approval, rule writes): "
                    "denied by bob (web, password): No."
                ),
                "The rule says: Look at the WHERE.",
                f"A person has decided this: do not send it again. {NO_OTHER_WAY}",
            ],
            {"rule": "writes"},
            id="denied before it was sent again",
        ),
        pytest.param(
            error_responses.unanswered(AT_ROOT, ASKS, "a1"),
            "E-CALL-UNANSWERED",
            [
                "Refused by mcpwrap (no approver answered in time). Approval a1, rule writes.",
                "The rule says: Look at the WHERE.",
                (
                    "This is not a denial: no person has decided. Tell your user that it needs an "
                    f"answer; the same request, sent again, asks once more. {NO_OTHER_WAY}"
                ),
            ],
            {"rule": "writes", "approval": "a1"},
            id="not answered in time",
        ),
        pytest.param(
            error_responses.unasked(AT_ROOT, ASKS_SHIPPED, NOBODY),
            "E-CALL-NOBODY",
            [
                (
                    "Refused by mcpwrap (needs approval, rule default.sql-drop): "
                    "no account can approve calls of alice."
                ),
                "The rule says: Drops or truncates.",
                NOT_ASKED,
                "Root sets up an approver: `sudo usermod -aG mcpwrap-approvers USER`.",
                (
                    "Root can disable the rule: "
                    "`sudo mcpwrap policy default disable sql-drop --server orders`"
                ),
            ],
            {"rule": "default.sql-drop"},
            id="no approver is set up",
        ),
        pytest.param(
            error_responses.unasked(AT_USER, ASKS_SHIPPED, NO_APPROVER),
            "E-CALL-NO-APPROVER",
            [
                (
                    "Refused by mcpwrap (needs approval, rule default.sql-drop): "
                    "`mcpwrap run --no-approver` asks no person."
                ),
                "The rule says: Drops or truncates.",
                NOT_ASKED,
                "Without that option it asks the user who runs the agent.",
                (
                    "Your user can disable the rule: "
                    "`mcpwrap policy default disable sql-drop --server orders --user`"
                ),
            ],
            {"rule": "default.sql-drop"},
            id="mcpwrap run",
        ),
        pytest.param(
            error_responses.unasked(AT_ROOT, ASKS, PAUSED),
            "E-CALL-PAUSED",
            [
                (
                    "Refused by mcpwrap (needs approval, rule writes): "
                    "paused: 5 requests were denied; retry in 600 s."
                ),
                "The rule says: Look at the WHERE.",
                NOT_ASKED,
            ],
            {"rule": "writes"},
            id="paused",
        ),
        pytest.param(
            error_responses.unrecorded(),
            "E-CALL-UNRECORDED",
            ["Refused by mcpwrap: the audit cannot be written."],
            {},
            id="no audit",
        ),
    ],
)
def test_a_refusal(refusal: Refusal, code: str, lines: list[str], fields: dict[str, Json]) -> None:
    first, *rest = lines
    assert refusal.text.split("\n") == [f"{first} [{code}]", *rest]
    assert refusal.fields() == {"code": code, **fields}
    assert len(lines) <= 6


def test_a_refusal_of_pins_has_their_code() -> None:
    refusal = error_responses.unaccepted(PinRefusal("text [E-PINS-HELD]", "why", "E-PINS-HELD"))
    assert refusal.fields() == {"code": "E-PINS-HELD"}
    assert refusal.text == "text [E-PINS-HELD]"


def test_each_code_is_one_of_a_situation() -> None:
    assert len(set(CallCode)) == 12


def test_a_long_argument_is_cut() -> None:
    judgement = Judgement(Decision.BLOCK, "r", hit="q: " + "x" * 9000)
    refusal = error_responses.blocked(AT_ROOT, judgement)
    assert len(refusal.argument) == error_responses.MAX_HIT_CHARS
    assert len(refusal.text) < 1000


CALL = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"%s"%s}}'
ENVELOPE = ',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
PLAIN = '{"name":"plain","inputSchema":{"type":"object"}}'
TYPED = '{"name":"typed","inputSchema":{},"outputSchema":{"type":"object"}}'


def refused(revision: str, listed: str, tool: str) -> dict[str, Json]:
    """Return the result of a call that the policy refuses, after the server listed its tools."""
    gate = Gate(ScriptedPolicy(default=BLOCKED), ScriptedLimits(), ScriptedAudit())
    gate.policy = ScriptedPolicy()
    is_modern = revision == "2026-07-28"
    meta = ENVELOPE if is_modern else ""
    if not is_modern:
        gate.from_agent(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}')
        answer = '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"%s"}}'
        gate.from_server((answer % revision).encode())
    if listed:
        params = f"{{{meta[1:]}}}"
        gate.from_agent(
            f'{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}'.encode()
        )
        gate.from_server(f'{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{listed}]}}}}'.encode())
    gate.policy = ScriptedPolicy(default=BLOCKED)
    *_, action = gate.from_agent((CALL % (tool, meta)).encode())
    assert isinstance(action, ToAgent)
    result: dict[str, Json] = msgspec.json.decode(action.line)["result"]
    return result


@pytest.mark.parametrize(
    ("revision", "listed", "tool", "is_structured"),
    [
        ("2025-11-25", PLAIN, "plain", True),
        ("2025-06-18", PLAIN, "plain", True),
        ("2025-03-26", PLAIN, "plain", False),  # the revision has none
        ("2026-07-28", PLAIN, "plain", True),
        ("2025-11-25", TYPED, "typed", False),  # the TypeScript SDK would compare it
        ("2026-07-28", TYPED, "typed", False),
        ("2025-11-25", f"{PLAIN},{TYPED}", "plain", True),
        ("2025-11-25", "", "plain", False),  # the client may know a definition from before
        ("2025-11-25", PLAIN, "other", False),
    ],
)
def test_programs_read_the_same(
    revision: str, listed: str, tool: str, *, is_structured: bool
) -> None:
    result = refused(revision, listed, tool)
    fields = {"code": "E-CALL-BLOCKED", "rule": "no-select", "argument": BLOCKED.hit}
    content = result["content"]
    assert isinstance(content, list)
    assert isinstance(content[0], dict)
    message = content[0]["text"]
    assert result["_meta"] == {META_KEY: fields}
    assert result["isError"] is True
    # Some clients give their model the structure alone, so it has the text.
    structure = {"mcpwrap": {"message": message, **fields}}
    assert result.get("structuredContent") == (structure if is_structured else None)


def test_a_tool_that_had_a_schema_once_stays_without_structure() -> None:
    session = session_of(ROOT)
    context = RequestContext("tools/call", "a", ProtocolEra.MODERN)
    session.remember_tools([{"name": "a", "outputSchema": {"type": "object"}}])
    session.remember_tools([{"name": "a"}])
    refusal = error_responses.blocked(session, BARE)
    answer = error_responses.respond(session, 1, context, refusal)
    assert b"structuredContent" not in answer


def test_a_request_of_another_method_gets_an_error_with_the_same_fields() -> None:
    context = RequestContext("resources/read", "a:b", ProtocolEra.HANDSHAKE)
    refusal = error_responses.blocked(AT_ROOT, BARE)
    error = msgspec.json.decode(error_responses.respond(AT_ROOT, 1, context, refusal))["error"]
    assert error["data"] == {
        "rule": "no-drop",
        "mcpwrap": {"code": "E-CALL-BLOCKED", "rule": "no-drop"},
    }
    assert error["message"] == refusal.text
