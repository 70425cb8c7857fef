"""`mcpwrap policy` as typed."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.policy.command import command
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import tty
from mcpwrap.machine.default_policy import shipped

POLICY = """
version: 1
default_policy: {disabled: [{rule: "*", server: plain}]}
limits: {calls: 5/s, cool_down: 1min}
rules:
  - {name: no-x, tool: t, when: [{arg: x, equals: 1}], action: block, message: Not x.}
  - {name: ask, tool: u, action: allow_with_approval}
  - {name: gone, tool: h, action: hide}
  - {name: noted, tool: "*", action: log}
"""
CASES = "- {name: one, server: s, tool: t, arguments: {x: 1}, expect: %s}\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "bad.yaml").write_text("version: 1\nrulse: []\ndefault: no\n")
    (tmp_path / "good.cases.yaml").write_text(CASES % "block")
    (tmp_path / "wrong.cases.yaml").write_text(CASES % "block" + CASES % "allow")
    return tmp_path


def run(*arguments: object, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(
        command, list(map(str, arguments)), input=stdin, standalone_mode=False
    )


def test_check_counts_rules_and_limits(files: Path) -> None:
    found = run("check", files / "policy.yaml")
    first, second = found.output.splitlines()
    assert first == "no errors; 4 rules, 0 on results, 1 limit; default: allow"
    count = len(shipped.load().rules)
    assert second == f"default policy: {count} rules, 0 disabled, {count} more for some servers"
    assert found.return_value == 0
    assert json.JSONDecoder().decode(run("check", files / "policy.yaml", "--json").output) == {
        "flaws": [],
        "warnings": [],
    }


def test_check_warns_and_finds_no_error(files: Path) -> None:
    (files / "warned.yaml").write_text(
        "version: 1\nrules:\n"
        '  - {name: w, tool: "*", when: [{arg: path, matches: /etc}], action: block}\n'
    )
    found = run("check", files / "warned.yaml")
    assert found.return_value == 0
    warning, fix, count, _ = found.output.splitlines()
    assert warning.startswith(f"warning: {files}/warned.yaml:3:26: 'w' blocks every call without")
    assert "default: …" in fix
    assert count.startswith("no errors; 1 rule, ")
    found = run("check", files / "warned.yaml", "--json")
    assert found.return_value == 0
    told = json.JSONDecoder().decode(found.output)
    assert told["flaws"] == []
    assert [warning["mark"]["line"] for warning in told["warnings"]] == [3]


def test_check_reports_every_flaw(files: Path) -> None:
    found = run("check", files / "bad.yaml")
    assert isinstance(found.exception, McpwrapError)
    assert found.exception.exit_code == 2
    assert f"{files}/bad.yaml:2:1: a policy has no key 'rulse'" in str(found.exception)
    found = run("check", files / "bad.yaml", "--json")
    assert found.return_value == 2
    flaws = json.JSONDecoder().decode(found.output)["flaws"]
    assert [(flaw["mark"]["line"], flaw["mark"]["column"]) for flaw in flaws] == [(2, 1), (3, 10)]


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("disabled", "disabled"),
        ("enabled", "N rules, 0 disabled"),
        ("{disabled: [{rule: delete-tools}, {rule: gone}]}", "N rules, 1 disabled"),
        (
            "{disabled: [{rule: delete-tools, server: git}, {rule: force-push}]}",
            "N rules, 1 disabled, 1 more for some servers",
        ),
        ('{disabled: [{rule: "*"}]}', "N rules, N disabled"),
    ],
)
def test_check_counts_what_is_disabled(files: Path, setting: str, line: str) -> None:
    (files / "some.yaml").write_text(f"version: 1\ndefault_policy: {setting}\n")
    said = run("check", files / "some.yaml").output.splitlines()
    assert said[-1] == f"default policy: {line.replace('N', str(len(shipped.load().rules)))}"


def test_check_warns_of_rules_that_the_default_policy_lacks(files: Path) -> None:
    (files / "some.yaml").write_text(
        "version: 1\ndefault_policy: {disabled: [{rule: force-pull}]}\n"
    )
    found = run("check", files / "some.yaml")
    assert found.return_value == 0
    warning, fix, *_ = found.output.splitlines()
    assert "the default policy has no rule 'force-pull'" in warning
    assert "did you mean `force-push`?" in fix


def test_a_missing_file_is_an_error(files: Path) -> None:
    found = run("check", files / "none.yaml")
    assert "cannot be read: No such file" in str(found.exception)


def test_test_compares(files: Path) -> None:
    found = run("test", files / "policy.yaml", files / "good.cases.yaml")
    assert (found.return_value, found.output) == (0, "ok       one\n1 cases, 0 of them differ\n")
    found = run("test", files / "policy.yaml", files / "wrong.cases.yaml")
    assert found.return_value == 1
    assert "DIFFERS  one: expected allow, got block by the rule no-x\n" in found.output
    found = run("test", files / "policy.yaml", files / "wrong.cases.yaml", "--json")
    assert found.return_value == 1
    assert [row["difference"][:8] for row in json.JSONDecoder().decode(found.output)] == [
        "",
        "expected",
    ]


def test_test_without_arguments_plays_the_cases_of_the_default_policy(files: Path) -> None:
    found = run("test")
    assert found.return_value == 0
    assert found.output.splitlines()[-1].endswith(" cases, 0 of them differ")
    found = run("test", files / "policy.yaml")
    assert "a policy without its cases" in str(found.exception)


def test_the_default_policy_judges_with_a_file(files: Path) -> None:
    case = "- {name: one, server: s, tool: delete_project, expect: needs-approval}\n"
    (files / "default.cases.yaml").write_text(case)
    (files / "plain.yaml").write_text("version: 1\n")
    (files / "off.yaml").write_text("version: 1\ndefault_policy: disabled\n")
    assert run("test", files / "plain.yaml", files / "default.cases.yaml").return_value == 0
    assert run("test", files / "off.yaml", files / "default.cases.yaml").return_value == 1


def test_explain_says_how_the_default_policy_took_part(files: Path) -> None:
    (files / "named.yaml").write_text(
        "version: 1\nrules: [{name: mine, tool: delete_project, action: allow}]\n"
    )
    asked = run("explain", "s", "delete_project", "{}", "--policy", files / "policy.yaml").output
    line = "default.delete-tools (allow_with_approval, default policy, since 0.2.0): applies"
    assert line in asked.splitlines()
    rest = [text for text in asked.splitlines() if text.startswith("default policy, since")]
    assert rest[0].startswith("default policy, since 0.2.0, does not apply: default.")
    assert "decision: needs approval, by the rule default.delete-tools" in asked
    assert "default policy: default.delete-tools asks: a rule with `tool: delete_project`" in asked
    lifted = run("explain", "s", "delete_project", "{}", "--policy", files / "named.yaml").output
    assert "decision: allow, by the rule mine" in lifted
    assert "which lifts the question of default.delete-tools" in lifted
    assert "default limits of each session: 600 calls in 60 s" in lifted


def test_colour_is_for_terminals(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("test", files / "policy.yaml", files / "good.cases.yaml")
    assert "\x1b" not in run(*arguments).output
    monkeypatch.setattr(tty, "is_coloured", lambda _: True)
    assert "\x1b[32m" in run(*arguments).output


def test_explain_says_why(files: Path) -> None:
    policy = ("--policy", files / "policy.yaml")
    assert run("explain", "plain", "t", '{"x": 1}', *policy).output.splitlines() == [
        "no-x (block): applies",
        "  holds: x equals 1",
        "    found: 1",
        "decision: block, by the rule no-x",
        "message: Not x.",
        "limits: 5 calls in 1 s, cool down 60 s",
    ]
    assert (
        "decision: needs approval" in run("explain", "plain", "u", "-", *policy, stdin="{}").output
    )
    assert (
        "the tool is hidden from the agent's tool list"
        in run("explain", "plain", "h", "{}", *policy).output
    )
    assert "notes: noted" in run("explain", "plain", "x", "{}", *policy).output
    found = run("explain", "plain", "resources/read", "{}", *policy).output
    assert found == (
        "no rule covers this request\ndecision: allow, by the default\nlimits: none in the policy\n"
    )
    found = run("explain", "plain", "t", '{"x": 2}', "--json", *policy).output
    assert json.JSONDecoder().decode(found)["judgement"]["notes"] == ["noted"]


BY_PROJECT = """
version: 1
rules:
  - {name: prod, server: plain, project: /a/prod*, tool: t, action: block}
default_policy: disabled
"""
IN_PROJECTS = """
- {name: there, server: plain, project: /a/prod, tool: t, expect: block, rule: prod}
- {name: elsewhere, server: plain, project: /a/dev, tool: t, expect: allow}
- {name: nowhere, server: plain, tool: t, expect: allow}
"""


def test_a_case_and_a_call_may_have_a_project(files: Path) -> None:
    policy, cases = files / "by-project.yaml", files / "by-project.cases.yaml"
    policy.write_text(BY_PROJECT)
    cases.write_text(IN_PROJECTS)
    assert run("test", policy, cases).output.endswith("3 cases, 0 of them differ\n")
    options = ("plain", "t", "{}", "--policy", policy)
    assert run("explain", *options, "--project", "/a/prod").output.splitlines()[:2] == [
        "prod (block): applies",
        "decision: block, by the rule prod",
    ]
    assert run("explain", *options).output.splitlines()[:3] == [
        "no rule covers this request",
        "for other projects, see --project: prod",
        "decision: allow, by the default",
    ]
    found = run("explain", *options, "--project", "src")
    assert "'src' is not an absolute path" in str(found.exception)


@pytest.mark.parametrize("text", [b"[", b"[]", b"", b"5", b"[" * 100_000, b'{"\xff": 1}'])
def test_arguments_are_an_object(files: Path, text: bytes) -> None:
    found = run("explain", "s", "t", "-", "--policy", files / "policy.yaml", stdin=text)
    assert "not a JSON object" in str(found.exception)


def test_all_have_help_with_an_example() -> None:
    for verb in ((), ("check",), ("test",), ("explain",)):
        assert "Example:  mcpwrap policy" in run(*verb, "--help").output
