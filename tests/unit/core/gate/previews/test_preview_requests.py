"""Previews of held calls: requests of the gate, shown, bounded, and forwarded to no agent."""

import pytest

from mcpwrap.core.gate.gate import Action, Gate, ToAgent, ToServer
from mcpwrap.core.gate.ports import ApprovalOutcome, AuditedDecision
from mcpwrap.core.gate.previews.preview_requests import ANSWER_S, MAX_OPEN
from mcpwrap.core.policy.decision import Decision, Judgement
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.strict_json import encode
from mcpwrap.core.wire.server_files import PreviewRule
from tests.unit.core.scripted import (
    ScriptedApprovals,
    ScriptedAudit,
    ScriptedLimits,
    ScriptedPolicy,
    recorded,
)

READ = PreviewRule(tool="read", arguments={"path": "at"}, compare="text")
COUNT = PreviewRule(tool="query", arguments={"sql": "statement"}, count="statement")
OURS = "mcpwrap-preview-1"
ASKS = Judgement(Decision.NEEDS_APPROVAL, "writes")


class World:
    """Session in which `write` and `execute` wait for a person, and have a preview."""

    def __init__(self, audit: ScriptedAudit | None = None) -> None:
        self.policy = ScriptedPolicy()
        for tool in ("write", "execute"):
            self.policy.judgement_of[f"tools/call {tool}"] = ASKS
        self.audit, self.approvals = audit or ScriptedAudit(), ScriptedApprovals()
        self.gate = Gate(self.policy, ScriptedLimits(), self.audit, self.approvals)
        self.gate.preview({"write": READ, "execute": COUNT})
        self.gate.at(100.0)
        self.agent({"method": "initialize", "id": 0, "params": {"protocolVersion": "2025-11-25"}})
        self.server({"id": 0, "result": {"protocolVersion": "2025-11-25", "capabilities": {}}})

    def agent(self, message: dict[str, Json]) -> list[bytes]:
        """Send a message of the agent; return what the server receives."""
        return to_server(self.gate.from_agent(encode({"jsonrpc": "2.0", **message})))

    def server(self, message: dict[str, Json]) -> list[Action]:
        return self.gate.from_server(encode({"jsonrpc": "2.0", **message}))

    def call(
        self, tool: str = "write", id_: int = 1, statement: Json = "DELETE FROM t"
    ) -> list[bytes]:
        arguments: Json = {"at": "/a", "text": "new", "statement": statement}
        params: Json = {"name": tool, "arguments": arguments}
        return self.agent({"id": id_, "method": "tools/call", "params": params})

    @property
    def previewed(self) -> list[str]:
        return [one for one in self.approvals.asked if "previewed" in one]


def to_server(actions: list[Action]) -> list[bytes]:
    return [one.line for one in actions if isinstance(one, ToServer)]


@pytest.fixture
def world() -> World:
    return World()


def text(said: str, **more: Json) -> dict[str, Json]:
    return {"id": OURS, "result": {"content": [{"type": "text", "text": said}], **more}}


def test_a_call_that_waits_is_shown_with_what_the_server_has(world: World) -> None:
    [sent] = world.call()
    assert sent == (
        b'{"jsonrpc":"2.0","id":"mcpwrap-preview-1","method":"tools/call",'
        b'"params":{"name":"read","arguments":{"path":"/a"}}}\n'
    )
    [record] = [recorded(one) for one in world.audit.written if one.sender == "gate"]
    assert record.startswith(f"gate allowed tools/call read id={OURS}")
    assert world.server(text("old")) == []  # for no agent
    assert world.previewed == ["1 previewed by read: old text"]
    assert world.server(text("again")) == []
    assert len(world.previewed) == 1
    approved = world.gate.handle_outcome(ApprovalOutcome(hold=1, what="approved", by="bob"))
    assert len(to_server(approved)) == 1


def test_the_rows_of_a_statement_are_counted(world: World) -> None:
    [sent] = world.call("execute")
    assert b'"arguments":{"sql":"SELECT count(*) FROM t"}' in sent
    world.server(text("17"))
    assert world.previewed == ["1 previewed by query: 17 SELECT count(*) FROM t"]


def test_the_envelope_of_the_call_is_that_of_its_preview(world: World) -> None:
    params: Json = {
        "name": "write", "arguments": {"at": "/a"}, "_meta": {"progressToken": 1, "x": 2},
    }  # fmt: skip
    [sent] = world.agent({"id": 1, "method": "tools/call", "params": params})
    assert b'"_meta":{"x":2}' in sent


@pytest.mark.parametrize(
    "statement",
    ["DROP TABLE t", 5],
)
def test_rows_that_cannot_be_counted_are_not(world: World, statement: Json) -> None:
    assert world.call("execute", statement=statement) == []
    [said] = world.previewed
    assert said.endswith("its rows cannot be counted with certainty")


@pytest.mark.parametrize(
    ("query_bytes", "why"),
    [(8192, None), (8193, "the query of its rows takes over 8 KiB")],
)
def test_the_query_that_counts_has_a_limit(world: World, query_bytes: int, why: str | None) -> None:
    begins = len("SELECT count(*) FROM t WHERE a = ''")
    text = "é" * 4000 + "x" * (query_bytes - begins - 8000)
    sent = world.call("execute", statement=f"DELETE FROM t WHERE a = '{text}'")
    assert len(sent) == (why is None)
    assert [said.partition(": ")[2] for said in world.previewed] == ([why] if why else [])


def test_a_call_without_the_argument_has_no_preview(world: World) -> None:
    calls: list[Json] = [{"name": "write"}, {"name": "write", "arguments": {}}]
    for id_, params in enumerate(calls, 1):
        assert world.agent({"id": id_, "method": "tools/call", "params": params}) == []
    assert [said.partition(": ")[2] for said in world.previewed] == [
        "the call has no argument 'at'"
    ] * 2


@pytest.mark.parametrize("decision", [Decision.BLOCK, Decision.NEEDS_APPROVAL])
def test_what_the_policy_does_not_let_pass_is_not_sent(world: World, decision: Decision) -> None:
    world.policy.judgement_of["tools/call read"] = Judgement(decision, "no-reads")
    assert world.call() == []
    assert world.previewed == [
        "1 previewed by read: the policy does not let 'read' pass, rule no-reads"
    ]


def test_without_an_audit_it_is_not_sent() -> None:
    class Broken(ScriptedAudit):
        def write(self, decided: AuditedDecision) -> bool:
            return decided.sender != "gate" and super().write(decided)

    world = World(Broken())
    assert world.call() == []
    assert world.previewed == ["1 previewed by read: the audit cannot be written"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"id": OURS, "error": {"code": 1, "message": "x"}}, "the server answered with an error"),
        (text("x", isError=True), "the tool reported an error"),
        ({"id": OURS, "result": {"content": [{"type": "image"}]}}, "the tool returned no text"),
        ({"id": OURS, "result": {"task": {"taskId": "1"}}}, "the tool returned no text"),
        (text("x" * 65537), "the tool returned over 64 KiB"),
    ],
)
def test_an_answer_that_is_not_a_text_says_why(
    world: World, answer: dict[str, Json], why: str
) -> None:
    world.call()
    assert world.server(answer) == []
    assert world.previewed == [f"1 previewed by read: {why}"]


def test_structured_content_is_shown(world: World) -> None:
    world.call()
    world.server({"id": OURS, "result": {"content": [], "structuredContent": {"n": 1}}})
    assert world.previewed == ['1 previewed by read: {\n  "n": 1\n} text']


def test_a_rule_on_results_holds_for_it(world: World) -> None:
    world.call()
    world.policy.refused_results_of["tools/call read"] = Judgement(Decision.BLOCK, "no-secrets")
    world.server(text("secret"))
    assert world.previewed == ["1 previewed by read: rule no-secrets refuses the result"]


def test_it_is_given_up_in_time_and_cancelled(world: World) -> None:
    world.call()
    assert world.gate.due_in_s() == ANSWER_S
    world.gate.at(100.0 + ANSWER_S - 0.1)
    assert to_server(world.gate.tick()) == []
    world.gate.at(100.0 + ANSWER_S)
    [cancelled] = to_server(world.gate.tick())
    assert b"notifications/cancelled" in cancelled
    assert OURS.encode() in cancelled
    assert world.previewed == ["1 previewed by read: no answer in 2 s"]
    assert world.server(text("late")) == []
    assert len(world.previewed) == 1


def test_no_agent_uses_its_id(world: World) -> None:
    message: dict[str, Json] = {"jsonrpc": "2.0", "id": OURS, "method": "tools/list"}
    actions = world.gate.from_agent(encode(message))
    assert to_server(actions) == []
    assert any(isinstance(one, ToAgent) and b"the gate's own" in one.line for one in actions)
    assert len(world.agent({"id": "mcpwrap", "method": "tools/list"})) == 1


def test_only_so_many_are_read_at_once(world: World) -> None:
    for id_ in range(1, MAX_OPEN + 1):
        assert len(world.call(id_=id_)) == 1
    assert world.call(id_=MAX_OPEN + 1) == []
    assert world.previewed == [f"{MAX_OPEN + 1} previewed by read: 32 previews are being read"]


def test_the_end_of_the_server_and_a_cancelled_call_end_it(world: World) -> None:
    world.call()
    world.agent({"method": "notifications/cancelled", "params": {"requestId": 1}})
    assert world.server(text("old")) == []
    world.call(id_=2)
    world.gate.server_ended("it crashed")
    world.gate.at(200.0)
    assert to_server(world.gate.tick()) == []


def test_other_calls_have_none(world: World) -> None:
    world.policy.judgement_of["tools/call drop"] = ASKS
    assert world.call("drop") == []
    assert world.previewed == []
