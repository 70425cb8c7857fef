"""Messages to the agent and its user about a request that waits."""

import msgspec
import pytest

from mcpwrap.core.gate.gate import Gate, ToAgent, ToUser
from mcpwrap.core.gate.ports import ApprovalOutcome, PolicyOwner
from mcpwrap.core.policy.decision import Decision, Judgement
from tests.unit.core.scripted import (
    ScriptedApprovals,
    ScriptedAudit,
    ScriptedLimits,
    ScriptedPolicy,
)


@pytest.mark.parametrize(
    ("is_user", "where"),
    [
        (
            False,
            "mcpwrap approvals show a1 or, where mcpwrap-web.socket is on, http://127.0.0.1:52080/approval/a1",
        ),
        (True, "mcpwrap approvals --user show a1"),  # of `mcpwrap run`, which has no page
    ],
)
def test_the_agents_user_is_told_at_once_and_at_the_end(where: str, *, is_user: bool) -> None:
    policy = ScriptedPolicy({"tools/call a": Judgement(Decision.NEEDS_APPROVAL, "all")})
    gate = Gate(policy, ScriptedLimits(), ScriptedAudit(), ScriptedApprovals())
    gate.name_owner(PolicyOwner("sqlite", is_user=is_user))
    told = gate.from_agent(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}')
    line = f"a waits for approval a1, 300 s left: {where}"
    assert [one for one in told if isinstance(one, ToUser)] == [ToUser(f"mcpwrap: {line}")]
    done = gate.handle_outcome(ApprovalOutcome(hold=1, what="denied", by="bob\x1b[2J"))
    assert [one.line for one in done if isinstance(one, ToUser)] == [
        "mcpwrap: approval a1: the call is refused, by bob\\x1b[2J"
    ]


@pytest.mark.parametrize(
    ("capabilities", "level", "is_told"),
    [
        ("{}", "", False),  # the server sends no log messages, so the agent expects none
        ('{"logging":{}}', "", True),
        ('{"logging":{}}', "info", True),
        ('{"logging":{}}', "error", False),
    ],
)
def test_an_agent_that_wants_no_progress_is_told_by_a_log_message(
    capabilities: str, level: str, *, is_told: bool
) -> None:
    policy = ScriptedPolicy({"tools/call a": Judgement(Decision.NEEDS_APPROVAL, "all")})
    gate = Gate(policy, ScriptedLimits(), ScriptedAudit(), ScriptedApprovals())
    request = '{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}'
    gate.from_agent((request % (1, "initialize", "{}")).encode())
    result = {"protocolVersion": "2025-11-25", "capabilities": msgspec.json.decode(capabilities)}
    gate.from_server(msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": result}))
    if level:
        gate.from_agent((request % (2, "logging/setLevel", f'{{"level":"{level}"}}')).encode())
    said = gate.from_agent((request % (3, "tools/call", '{"name":"a"}')).encode())
    lines = [msgspec.json.decode(one.line) for one in said if isinstance(one, ToAgent)]
    where = "mcpwrap approvals show a1 or, where mcpwrap-web.socket is on, http://127.0.0.1:52080/approval/a1"
    text = f"a waits for approval a1, 300 s left: {where}"
    logged = {"level": "notice", "logger": "mcpwrap", "data": text}
    expected = {"jsonrpc": "2.0", "method": "notifications/message", "params": logged}
    assert lines == ([expected] if is_told else [])


@pytest.mark.parametrize(
    ("method", "result", "instructions"),
    [
        ("initialize", {"instructions": "Be kind."}, "Be kind.\n\nmcpwrap: no project"),
        ("initialize", {}, "mcpwrap: no project"),
        ("initialize", {"instructions": ""}, "mcpwrap: no project"),
        ("server/discover", {"instructions": "Be kind."}, "Be kind.\n\nmcpwrap: no project"),
        ("tools/list", {"instructions": "x", "tools": []}, "x"),
    ],
)
def test_an_advice_comes_after_the_servers_own_instructions(
    method: str, result: dict[str, object], instructions: str
) -> None:
    gate = Gate(ScriptedPolicy({}), ScriptedLimits(), ScriptedAudit(), ScriptedApprovals())
    gate.advise("mcpwrap: no project")
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}
    gate.from_agent(msgspec.json.encode(request))
    answer = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": result})
    (told,) = [one for one in gate.from_server(answer) if isinstance(one, ToAgent)]
    assert msgspec.json.decode(told.line)["result"]["instructions"] == instructions
