"""Gate of `mcpwrap run`: its policy, and its counters."""

import json
from pathlib import Path

import pytest

from mcpwrap.as_agent.run.local_gate import PolicySource, RunPolicy
from mcpwrap.core.gate.gate import ToAgent, ToServer
from mcpwrap.core.gate.ports import NO_APPROVALS
from mcpwrap.core.policy.arguments.kinds import SHELL_ARGUMENTS
from mcpwrap.core.policy.compiled import NO_CONTEXT, ServerContext
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Policy,
    Rule,
    Shell,
)
from mcpwrap.errors import UsageError
from mcpwrap.machine.default_policy import shipped
from mcpwrap.machine.user_policy import UserPolicy
from tests.unit.as_agent.run.scripted_run import ScriptedUserAudit, gate_for

POLICY = """
version: 1
limits: {calls: 2/min, identical_calls: 5, failures: 1}
rules: [{name: no-x, server: notes, tool: x, action: block}]
"""


def call(tool: str, request_id: int) -> bytes:
    params = {"name": tool, "arguments": {}}
    request = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
    return json.dumps(request).encode()


def read_policy(named: Path | None, own: UserPolicy) -> Policy:
    return PolicySource(named, own).read().policy


def test_without_a_file_the_default_policy_is_in_force(tmp_path: Path) -> None:
    default = shipped.load()
    found = read_policy(None, UserPolicy(tmp_path))
    assert found == Policy(default_rules=default.rules, default_limits=default.limits)


def test_the_users_files_add_up(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "policy.d").mkdir()
    for name in ("b.yaml", "a.yaml", "a.txt"):
        rule = f"[{{name: {name}, tool: x, action: log}}]"
        (tmp_path / "policy.d" / name).write_text(f"version: 1\nrules: {rule}\n")
    found = read_policy(None, UserPolicy(tmp_path))
    assert [rule.name for rule in found.rules] == ["no-x", "a.yaml", "b.yaml"]
    alone = read_policy(tmp_path / "policy.d/b.yaml", UserPolicy(tmp_path))
    assert [rule.name for rule in alone.rules] == ["b.yaml"]
    assert alone.default_rules  # a named file replaces the user's files, not the default policy
    (tmp_path / "policy.d/off.yaml").write_text("version: 1\ndefault_policy: disabled\n")
    assert read_policy(None, UserPolicy(tmp_path)).default_rules == ()


def test_a_named_policy_file_must_be_valid(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_policy(tmp_path / "other.yaml", UserPolicy(tmp_path))
    (tmp_path / "folder/policy.yaml").mkdir(parents=True)
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_policy(None, UserPolicy(tmp_path / "folder"))
    (tmp_path / "file").mkdir()
    (tmp_path / "file/policy.d").write_text("")
    with pytest.raises(UsageError, match="cannot be read: Not a directory"):
        read_policy(None, UserPolicy(tmp_path / "file"))
    (tmp_path / "bad.yaml").write_text("version: 2")
    with pytest.raises(UsageError, match="not a supported version"):
        read_policy(tmp_path / "bad.yaml", UserPolicy(tmp_path))


def test_rules_and_limits_hold(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    gate = gate_for(read_policy(None, UserPolicy(tmp_path)))
    actions = [gate.from_agent(call(tool, n))[-1] for n, tool in enumerate("xyyy")]
    assert [type(action) for action in actions] == [ToAgent, ToServer, ToServer, ToAgent]
    assert "2 calls in 60 s" in str(actions[-1])


def test_a_server_may_delete_in_its_workspaces() -> None:
    deletes = ArgumentCondition(SHELL_ARGUMENTS, Shell("deletes_outside"))
    policy = Policy(rules=(Rule(name="d", action="block", tools=("*",), when=(deletes,)),))
    gate = gate_for(policy, context=ServerContext(workspaces=("/home/a/p",)))
    for n, (folder, action) in enumerate([("/home/a/p/x", ToServer), ("/home/a/q", ToAgent)]):
        request = {"name": "y", "arguments": {"command": f"rm -rf {folder}"}}
        line = {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": request}
        assert type(gate.from_agent(json.dumps(line).encode())[-1]) is action


def test_failures_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    gate = gate_for(read_policy(None, UserPolicy(tmp_path)))
    gate.from_agent(call("y", 1))
    gate.from_server(b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}')
    assert capsys.readouterr().err == "mcpwrap run: 'y' is held back: 1 failures in a row\n"


def test_without_limits_nothing_is_counted() -> None:
    gate = gate_for(Policy())
    for n in range(3):
        assert type(gate.from_agent(call("y", n))[-1]) is ToServer
    gate.from_server(b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}')


def test_the_first_line_says_which_policy_is_in_force(tmp_path: Path) -> None:
    source = PolicySource(None, UserPolicy(tmp_path))
    default = f"the default policy, {len(shipped.load().rules)} rules"
    assert source.read().describe() == f"policy: no policy file; {default}"
    (tmp_path / "policy.yaml").write_text(POLICY)
    assert source.read().describe() == f"policy: 1 rule of {tmp_path}/policy.yaml; {default}"
    (tmp_path / "policy.yaml").write_text("version: 1\ndefault_policy: disabled\n")
    off = f"policy: 0 rules of {tmp_path}/policy.yaml; the default policy is disabled"
    assert source.read().describe() == off


def test_a_reload_puts_a_new_policy_in_force_and_a_faulty_one_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.yaml"
    source = PolicySource(None, UserPolicy(tmp_path))
    audit, voided = ScriptedUserAudit(), []
    in_force = RunPolicy(source, "notes")
    in_force.has_changed = lambda: voided.append(True)
    gate = in_force.gate(audit, NO_APPROVALS, NO_CONTEXT)
    for text, said, answered in (
        ("version: 2", "the policy stays as it was: ", ToServer),
        (POLICY, "reloaded: policy: 1 rule of ", ToAgent),
        (POLICY, "the policy is as it was", ToAgent),
        ("version: 1\nrules: [{", "the policy stays as it was: ", ToAgent),
        ("version: 1", "reloaded: policy: 0 rules of ", ToServer),
    ):
        file.write_text(text)
        in_force.reload()
        assert capsys.readouterr().err.startswith(f"mcpwrap run: {said}")
        assert in_force.renew(gate) == []
        assert type(gate.from_agent(call("x", len(audit.records.written)))[-1]) is answered
    assert len(audit.policies) == len(voided) == 2
    assert audit.records.policy == audit.policies[-1]
    audit.is_broken = True  # what cannot be recorded is not in force
    file.write_text(POLICY)
    in_force.reload()
    assert "the policy stays as it was: that cannot be recorded" in capsys.readouterr().err
