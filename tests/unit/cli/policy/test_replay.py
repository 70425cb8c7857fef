"""`mcpwrap policy replay` as typed."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.audit import source
from mcpwrap.cli.policy.command import command
from mcpwrap.errors import McpwrapError
from mcpwrap.machine.logs import audit_keys
from tests.unit.core.audit_records import sealed
from tests.unit.core.audits import Gate, keys, put

POLICY = """
version: 1
rules:
  - {name: no-x, tool: t, when: [{arg: x, equals: 1}], action: block}
  - {name: gone, tool: h, action: hide}
"""
CALL = '{"name":"t","arguments":{"x":%d,"y":"\u202e\\n"}}'


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    gate = Gate({})
    one, other = gate.open("one"), gate.open("other", uid=60_001)
    for x in (1, 2, 1):
        gate.record(one, target="t", sealed=sealed((CALL % x).encode()))
    gate.record(other, target="h", times=4)
    gate.record(other, target="t", hash="00")
    gate.record(other, target="free", decision="blocked", rule="old\n")
    put(tmp_path / "audit", gate.files)
    monkeypatch.setattr(source, "SYSTEM", tmp_path / "audit")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(audit_keys, "of_system", keys)
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(
        command, ["replay", *map(str, arguments)], standalone_mode=False, obj={}
    )


def test_changed_decisions_are_listed_by_rule(policy: Path) -> None:
    found = run(policy)
    assert found.return_value == 0
    lines = found.stdout.splitlines()
    assert [line for line in lines if not line.startswith("    ")] == [
        "6 of 8 would now be blocked",
        "  by the rule gone: 4",
        "  by the rule no-x: 2",
        "1 of 8 would now be allowed",
        r"  blocked until now by the rule old\n: 1",
        '1 calls were recorded as a hash only and cannot be judged: set audit = "sealed"',
    ]
    examples = [line for line in lines if line.startswith("    ")]
    assert len(examples) == 3 + 2 + 1
    assert examples[3].endswith(
        r'one  1-1  tools/call t id=0  {"name":"t","arguments":{"x":1,"y":"\\u202e\\n"}}'
    )


def test_others_than_root_do_not_see_what_is_sealed(
    policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "3 calls have sealed params, which only root can open" in run(policy).stdout


def test_one_server_or_a_time_may_be_asked_for(policy: Path) -> None:
    assert run("--server", "one", policy).stdout.startswith("2 of 3 would now be blocked\n")
    assert "0 requests: no decision would change" in run("--since", "2027-01-01", policy).stdout


def test_json_has_the_same(policy: Path) -> None:
    found = run("--json", policy)
    assert found.stdout.isascii()
    told = json.JSONDecoder().decode(found.stdout)
    assert told["judged"] == 8
    assert told["not_judged"] == {"hashed": 1, "sealed": 0, "broken": 0}
    assert [(g["rule"], g["count"]) for g in told["now_blocked"]] == [("gone", 4), ("no-x", 2)]
    assert [(g["rule"], g["count"]) for g in told["now_allowed"]] == [("old\n", 1)]
    assert told["now_blocked"][1]["examples"][0]["params"]["arguments"]["x"] == 1


def test_a_policy_with_flaws_is_not_replayed(policy: Path) -> None:
    policy.write_text("version: 1\nrulse: []\n")
    assert isinstance(run(policy).exception, McpwrapError)
