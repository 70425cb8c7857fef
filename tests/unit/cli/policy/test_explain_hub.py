"""`mcpwrap policy explain` of a hub: its own rules, then those of the member."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.policy.command import command
from mcpwrap.cli.policy.hub_call import MemberCall, member_call
from mcpwrap.config.model import Hub, HubMember
from mcpwrap.config.parse import SourceFile
from mcpwrap.errors import UsageError
from mcpwrap.machine import observer

CONFIG = b"""
[mcp_servers.git]
command = "/usr/bin/true"
[mcp_servers.plain]
command = "/usr/bin/true"
[mcp_servers.tools.members.git]
namespace = "g"
[mcp_servers.tools.members.plain]
namespace = ""
"""
POLICY = """
version: 1
default: block
rules:
  - {name: hub-asks, server: tools, tool: g__ask, action: allow_with_approval}
  - {name: hub-blocks, server: tools, tool: g__no, action: block}
  - {name: hub-allows, server: tools, tool: "*", action: allow}
  - {name: git-blocks, server: git, tool: push, action: block}
  - {name: git-asks, server: git, tool: commit, action: allow_with_approval}
  - {name: git-allows, server: git, tool: "*", action: allow}
  - {name: plain, server: plain, tool: "x__y", action: allow}
"""


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(observer, "has_configuration", lambda: True)
    monkeypatch.setattr(observer, "config_files", lambda: [SourceFile("config.toml", CONFIG)])
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


def explained(policy: Path, server: str, tool: str, *options: str) -> Result:
    arguments = ["explain", server, tool, "{}", "--policy", str(policy), *options]
    return CliRunner().invoke(command, arguments, standalone_mode=False)


@pytest.mark.parametrize(
    ("tool", "hub", "member", "together"),
    [
        ("g__log", "hub-allows", "git-allows", "allow"),
        ("g__commit", "hub-allows", "git-asks", "needs approval"),
        ("g__push", "hub-allows", "git-blocks", "block"),
        ("g__ask", "hub-asks", "git-allows", "needs approval"),
        ("g__no", "hub-blocks", "git-allows", "block"),
        ("x__y", "hub-allows", "plain", "allow"),  # of the member without a namespace
    ],
)
def test_both_judge_a_call(policy: Path, tool: str, hub: str, member: str, together: str) -> None:
    found = json.loads(explained(policy, "tools", tool, "--json").output)
    assert found["hub"]["judgement"]["rule"] == hub
    assert found["member"]["judgement"]["rule"] == member
    assert found["decision"] == together


def test_the_text_names_both(policy: Path) -> None:
    lines = explained(policy, "tools", "g__push").output.splitlines()
    assert [line for line in lines if line.endswith(":") or line.startswith("both")] == [
        "tools, g__push:",
        "git, push:",
        "both together: block",
    ]


@pytest.mark.parametrize(
    ("server", "tool", "rule"),
    [
        ("git", "push", "git-blocks"),  # a member called directly
        ("git", "g__no", "git-allows"),
        ("tools", "mcpwrap_status", "hub-allows"),  # the hub's own tool
        ("unknown", "x", ""),
    ],
)
def test_one_judges_any_other_call(policy: Path, server: str, tool: str, rule: str) -> None:
    found = json.loads(explained(policy, server, tool, "--json").output)
    assert found["judgement"]["rule"] == rule


def test_a_method_of_a_hub_has_no_member(policy: Path) -> None:
    found = json.loads(explained(policy, "tools", "resources/read", "--json").output)
    assert "judgement" in found


def test_a_machine_without_configuration(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "has_configuration", lambda: False)
    assert "judgement" in json.loads(explained(policy, "tools", "g__no", "--json").output)


HUB = Hub(members=(HubMember(name="git", namespace="g"), HubMember(name="b", namespace="a_b")))
OPEN = Hub(members=(*HUB.members, HubMember(name="plain", namespace="")))


@pytest.mark.parametrize(
    ("hub", "exposed", "call"),
    [
        (HUB, "g__x", MemberCall("git", "x")),
        (HUB, "g__x__y", MemberCall("git", "x__y")),  # the first separator is the one
        (HUB, "g___x", MemberCall("git", "_x")),
        (HUB, "a_b__x", MemberCall("b", "x")),
        (OPEN, "x", MemberCall("plain", "x")),
        (OPEN, "z__x", MemberCall("plain", "z__x")),
        (OPEN, "g__x", MemberCall("git", "x")),
        (OPEN, "mcpwrap_status", None),
    ],
)
def test_the_call_behind_a_name(hub: Hub, exposed: str, call: MemberCall | None) -> None:
    assert member_call("tools", hub, exposed) == call


@pytest.mark.parametrize(
    ("exposed", "code"),
    [
        ("x", "E-EXPLAIN-NO-MEMBER"),
        ("z__x", "E-EXPLAIN-NO-MEMBER"),
        ("g__" + "x" * 40 + "_0123abcd", "E-EXPLAIN-SHORTENED"),
    ],
)
def test_a_name_that_tells_no_call(exposed: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        member_call("tools", HUB, exposed)
    assert caught.value.code == code


def test_a_name_of_that_length_without_a_hash() -> None:
    assert member_call("tools", HUB, "g__" + "x" * 49) == MemberCall("git", "x" * 49)


def test_the_project_is_that_of_the_members_session(policy: Path) -> None:
    by_project = (
        '\n  - {name: hub-in-a, server: tools, project: /a, tool: "*", action: block}'
        '\n  - {name: git-in-a, server: git, project: /a, tool: "*", action: block}\n'
    )
    policy.write_text(POLICY.replace("rules:", "rules:" + by_project.rstrip(), 1))
    found = json.loads(explained(policy, "tools", "g__log", "--project", "/a", "--json").output)
    assert found["hub"]["judgement"]["rule"] == "hub-allows"
    assert found["member"]["judgement"]["rule"] == "git-in-a"
    assert found["decision"] == "block"
