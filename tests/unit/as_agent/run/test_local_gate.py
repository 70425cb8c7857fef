"""Gate of `mcpwrap run`: its policy, and its counters."""

import json
from pathlib import Path

import pytest

from mcpwrap.as_agent.run.local_gate import gate_for, read_policy
from mcpwrap.core.gate.gate import ToAgent, ToServer
from mcpwrap.core.policy.rules import Policy
from mcpwrap.errors import UsageError
from tests.unit.core.scripted import ScriptedAudit

POLICY = """
version: 1
limits: {calls: 2/min, identical_calls: 5, failures: 1}
rules: [{name: no-x, server: s, tool: x, action: block}]
"""


def call(tool: str, request_id: int) -> bytes:
    params = {"name": tool, "arguments": {}}
    request = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
    return json.dumps(request).encode()


def test_without_a_file_there_are_no_rules(tmp_path: Path) -> None:
    assert read_policy(None, tmp_path / "policy.yaml") == Policy()


def test_a_named_policy_file_must_be_valid(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_policy(tmp_path / "other.yaml", tmp_path / "policy.yaml")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_policy(None, tmp_path)
    (tmp_path / "bad.yaml").write_text("version: 2")
    with pytest.raises(UsageError, match="not a supported version"):
        read_policy(tmp_path / "bad.yaml", tmp_path / "policy.yaml")


def test_rules_and_limits_hold(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    gate = gate_for("s", read_policy(None, tmp_path / "policy.yaml"), ScriptedAudit())
    actions = [gate.from_agent(call(tool, n))[-1] for n, tool in enumerate("xyyy")]
    assert [type(action) for action in actions] == [ToAgent, ToServer, ToServer, ToAgent]
    assert "2 calls in 60 s" in str(actions[-1])


def test_failures_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    gate = gate_for("s", read_policy(None, tmp_path / "policy.yaml"), ScriptedAudit())
    gate.from_agent(call("y", 1))
    gate.from_server(b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}')
    assert capsys.readouterr().err == "mcpwrap run: 'y' is held back: 1 failures in a row\n"


def test_without_limits_nothing_is_counted() -> None:
    gate = gate_for("s", Policy(), ScriptedAudit())
    for n in range(3):
        assert type(gate.from_agent(call("y", n))[-1]) is ToServer
    gate.from_server(b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}')
