"""Accounts that `doctor` examines for rules that require approval."""

from pathlib import Path

import pytest

from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.core.wire.approver_passwords import Approver, Approvers, encode
from mcpwrap.linux import accounts
from mcpwrap.machine.doctor import approval_checks
from mcpwrap.plan import paths

CONFIG = parse([SourceFile("c", b"""
[mcp_servers.one]
command = "/usr/bin/true"
[mcp_servers.one.mcpwrap]
agents = ["alice", "@team"]
[mcp_servers.two]
command = "/usr/bin/true"
[mcp_servers.two.mcpwrap]
agents = ["dora"]
""")])  # fmt: skip
ASKS = "version: 1\nrules: [{name: a, server: one, tool: '*', action: allow_with_approval%s}]"


@pytest.fixture
def policy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[SourceFile]:
    members = {"team": ["bob"], "mcpwrap-approvers": ["bob", "dora"]}
    monkeypatch.setattr(accounts, "members_of", lambda group: members.get(group, []))
    monkeypatch.setattr(accounts, "gid_of", lambda _: None)
    monkeypatch.setattr(paths, "APPROVERS", str(tmp_path / "approvers.json"))
    files: list[SourceFile] = []
    monkeypatch.setattr(approval_checks, "policy_files", lambda: files)
    return files


@pytest.mark.parametrize(
    "text", ["version: 1", ASKS % ", observe: true", "version: 1\ndefault: block"]
)
def test_without_a_rule_that_asks_there_is_no_check(policy: list[SourceFile], text: str) -> None:
    policy.append(SourceFile("p", text.encode()))
    assert approval_checks.approvals(CONFIG) == []


def test_agents_of_servers_that_ask_are_compared_with_approvers(
    policy: list[SourceFile],
) -> None:
    policy.append(SourceFile("p", (ASKS % "").encode()))
    found = approval_checks.approvals(CONFIG)
    assert [one.what for one in found] == ["approvals", "approvals by bob"]
    one = Approver(uid=1000, hash="x")
    Path(paths.APPROVERS).write_text(encode(Approvers(by_user={"alice": one})))
    found = approval_checks.approvals(CONFIG)
    assert [one.what for one in found][1:] == ["approvals by alice", "approvals by bob"]
    assert found[0].found == "members: bob, dora; by password: alice"


def test_damaged_files_are_reported(policy: list[SourceFile]) -> None:
    Path(paths.APPROVERS).write_text("{")
    (one,) = approval_checks.approvals(CONFIG)
    assert one.state == "failed"
    assert one.found.endswith("cannot be parsed [E-PASSWORD-FILE-DAMAGED]")
    policy.append(SourceFile("p", b"version: 1\nrules: 5"))
    (one,) = approval_checks.approvals(CONFIG)
    assert (one.what, one.state) == ("policy", "failed")
