"""`mcpwrap policy rules` and `check --live` as typed, with a scripted gate."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.policy.command import command
from mcpwrap.config.parse import SourceFile
from mcpwrap.core.pins.pins_report import PinsReport
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Equals,
    LimitsEntry,
    Policy,
    ResultRule,
    Rule,
)
from mcpwrap.core.wire.server_files import Pins
from mcpwrap.errors import McpwrapError
from mcpwrap.machine import observer
from tests.unit.cli.scripted_gate import ScriptedGate
from tests.unit.core.pins.pin_book import PinBook, tool_definition

IS_A = (ArgumentCondition("x", Equals('"a"')),)
POLICY = Policy(
    rules=(
        Rule(name="no", tools=("drop",), action="block", message="Do not.", projects=("/a/*",)),
        Rule(name="seen", tools=("*",), action="block", observe=True),
        Rule(name="accepted-1", tools=("t",), when=IS_A, action="allow", instead_of=("default.x",)),
    ),
    default_rules=(
        Rule(name="default.x", tools=("t",), action="allow_with_approval", since="0.2.0"),
    ),
    limits=(LimitsEntry(calls=5),),
    default_limits=(LimitsEntry(repeated_calls=50, scope="session"),),
    results=(ResultRule(name="small", max_bytes=1024, projects=("/a", "/b")),),
)


def run(*arguments: str, environ: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(command, list(arguments), standalone_mode=False, obj=environ or {})


def test_the_rules_are_listed_in_their_order(gate: ScriptedGate) -> None:
    gate.policies["git"] = POLICY
    assert run("rules", "git").stdout.splitlines() == [
        "rules of the operator, the first that applies decides:",
        "  no: blocks calls of drop in /a/*: Do not.",
        "  seen: blocks calls of any tool; it is only noted",
        "  otherwise: allow",
        "rules of the default policy, after them:",
        "  default.x: asks a person for approval of calls of t",
        "answers to the questions of these rules, given once for such calls:",
        '  accepted-1: allows calls of t, if x equals "a", instead of the question of default.x',
        "limits:",
        "  calls of any tool: 5 calls in 60 s; of all sessions of an agent",
        "  calls of any tool: 50 repeated calls in 600 s; of a session",
        "rule on results: small, in /a or /b",
    ]
    found = json.loads(run("rules", "git", "--json").stdout)
    assert [(rule["name"], rule["origin"]) for rule in found["rules"]] == [
        ("no", "operator"),
        ("seen", "operator"),
        ("default.x", "default"),
        ("accepted-1", "answer"),
    ]


def test_a_server_without_rules(gate: ScriptedGate) -> None:
    gate.policies["git"] = Policy(observe=("git",), has_default_policy=False, default="block")
    assert run("rules", "git").stdout.splitlines() == [
        "git is under observation: rules only note what they would do",
        "rules of the operator, the first that applies decides:",
        "  none",
        "  otherwise: block",
        "rules of the default policy, after them:",
        "  none",
        "limits:",
        "  none",
    ]


@pytest.mark.parametrize(
    ("server", "code", "status"),
    [("nothing", "E-POLICY-RULES-NO-SERVER", 2), ("broken", "E-SESSION-POLICY", 1)],
)
@pytest.mark.usefixtures("gate")
def test_a_refusal_has_a_name(server: str, code: str, status: int) -> None:
    found = run("rules", server).exception
    assert isinstance(found, McpwrapError)
    assert (found.code, found.exit_code) == (code, status)


def test_the_rules_of_ones_own_runs_are_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "mcpwrap").mkdir()
    (tmp_path / "mcpwrap/policy.yaml").write_text(
        "version: 1\nrules:\n  - {name: mine, server: git, tool: x, action: block}\n"
        "  - {name: other, server: db, tool: x, action: block}\n"
    )
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    said = run("rules", "git", "--user", environ=environ).stdout
    assert "  mine: blocks calls of x" in said
    assert "other:" not in said
    assert "default.delete-tools" in said


CONFIG = b"""
[mcp_servers.git]
command = "/usr/bin/true"
[mcp_servers.new]
command = "/usr/bin/true"
[mcp_servers.strange]
command = "/usr/bin/true"
[mcp_servers.unpinned]
command = "/usr/bin/true"
[mcp_servers.tools.members.git]
namespace = "g"
[mcp_servers.more.members.git]
[mcp_servers.more.members.new]
"""
UNKNOWN = (
    "not known are the tools of more, new, strange, unpinned: no session has listed them, pins"
    " are off, or this account may not see them"
)
LIVE = """
version: 1
rules:
  - name: good
    server: [git, tools]
    tool: [push, g__push]
    when: [{arg: force, equals: true}]
    action: block
  - {name: dead, server: git, tool: drop-database, action: block}
  - {name: typo, server: git, tool: push, when: [{arg: froce, equals: true}], action: block}
  - {name: of-hub, server: tools, tool: push, action: block}
  - {name: unknown, server: [new, more, strange, unpinned], tool: nothing, action: block}
"""


@pytest.fixture
def live(gate: ScriptedGate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(observer, "config_files", lambda: [SourceFile("config.toml", CONFIG)])
    book = PinBook()
    schema: dict[str, object] = {
        "type": "object",
        "properties": {"force": {"type": "boolean"}},
    }
    push = tool_definition("push", "Pushes.", inputSchema=schema)  # type: ignore[arg-type]
    book.show("1-1", push, tool_definition("log", "Logs."), tool_definition("o dd"))

    def report(server: str, mode: Pins, *, is_listed: bool) -> None:
        accepted = book.pins.accepted if is_listed else ()
        gate.report(PinsReport(server=server, mode=mode, accepted=accepted))

    report("git", "first-use", is_listed=True)
    report("new", "first-use", is_listed=False)
    report("unpinned", "off", is_listed=True)
    path = tmp_path / "policy.yaml"
    path.write_text(LIVE)
    return path


def test_rules_that_no_listed_tool_meets_are_named(live: Path) -> None:
    found = run("check", "--live", str(live))
    assert found.return_value == 1
    assert found.stdout.splitlines() == [
        "dead: no listed tool is drop-database",
        "typo: no tool that it meets has the argument froce",
        "of-hub: no listed tool is push",
        "5 rules on tools, of which 3 without effect",
        UNKNOWN,
    ]
    as_json = json.loads(run("check", "--live", "--json", str(live)).stdout)
    assert [one["rule"] for one in as_json["dead"]] == ["dead", "typo", "of-hub"]
    assert as_json["unknown"] == ["more", "new", "strange", "unpinned"]


def test_a_policy_whose_rules_meet_tools_passes(live: Path) -> None:
    live.write_text("\n".join(LIVE.split("\n")[:8]))
    found = run("check", "--live", str(live))
    assert found.return_value == 0
    assert found.stdout.startswith("1 rule on tools, of which 0 without effect\n")
