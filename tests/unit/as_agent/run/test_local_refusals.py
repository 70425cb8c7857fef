"""Refusals of `mcpwrap run --no-approver`: it asks no person, and its user owns the policy."""

import msgspec
import pytest

from mcpwrap.core.gate.gate import ToAgent
from mcpwrap.core.policy.rules import Action, Policy, Rule
from tests.unit.as_agent.run.scripted_run import ScriptedUserAudit, gate_for

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"drop"}}'


@pytest.mark.parametrize(
    ("action", "code", "decision", "parts"),
    [
        ("block", "E-CALL-BLOCKED", "blocked", ["(rule no-drop). Keep it."]),
        (
            "allow_with_approval",
            "E-CALL-NO-APPROVER",
            "unasked",
            ["`mcpwrap run --no-approver` asks no person", "Without that option it asks"],
        ),
    ],
)
def test_a_refusal_names_the_user(
    action: Action, code: str, decision: str, parts: list[str]
) -> None:
    rule = Rule(name="no-drop", action=action, tools=("drop",), message="Keep it.")
    audit = ScriptedUserAudit()
    *_, answer = gate_for(Policy(rules=(rule,)), audit).from_agent(CALL)
    assert isinstance(answer, ToAgent)
    result = msgspec.json.decode(answer.line)["result"]
    assert result["_meta"]["org.mcpwrap/refusal"] == {"code": code, "rule": "no-drop"}
    text = result["content"][0]["text"]
    assert [part for part in parts if part not in text] == []
    assert "Your user can change the policy of `mcpwrap run`" in text
    assert [one.decision for one in audit.records.written] == [decision]
