"""Refusals of `mcpwrap run`: it asks no person, and its user owns the policy."""

import msgspec
import pytest

from mcpwrap.as_agent.run.local_gate import gate_for
from mcpwrap.core.gate.gate import ToAgent
from mcpwrap.core.policy.rules import Action, Policy, Rule
from tests.unit.core.scripted import ScriptedAudit

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"drop"}}'


@pytest.mark.parametrize(
    ("action", "code", "decision", "parts"),
    [
        ("block", "E-CALL-BLOCKED", "blocked", ["(rule no-drop). Keep it."]),
        (
            "allow_with_approval",
            "E-CALL-NOBODY",
            "unasked",
            ["`mcpwrap run` cannot ask a person", "Installed as a package, mcpwrap asks"],
        ),
    ],
)
def test_a_refusal_names_the_user(
    action: Action, code: str, decision: str, parts: list[str]
) -> None:
    rule = Rule(name="no-drop", action=action, tools=("drop",), message="Keep it.")
    audit = ScriptedAudit()
    *_, answer = gate_for("notes", Policy(rules=(rule,)), audit).from_agent(CALL)
    assert isinstance(answer, ToAgent)
    result = msgspec.json.decode(answer.line)["result"]
    assert result["_meta"]["org.mcpwrap/refusal"] == {"code": code, "rule": "no-drop"}
    text = result["content"][0]["text"]
    assert [part for part in parts if part not in text] == []
    assert "Your user can change the policy of `mcpwrap run`" in text
    assert [one.decision for one in audit.written] == [decision]
