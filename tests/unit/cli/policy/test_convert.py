"""`mcpwrap policy convert` as typed."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.policy.command import command
from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.errors import PolicyError
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.errors import McpwrapError

SHARED = Path(__file__).parents[3] / "shared/sentinel/security_policy.yaml"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, ["convert", *map(str, arguments)], standalone_mode=False)


def test_the_policy_is_printed_and_warnings_are_on_standard_error() -> None:
    found = run(SHARED, "--server", "sqlite*")
    assert found.return_value == 0
    policy = parse_policy([SourceFile("printed", found.stdout.encode())])
    assert [rule.name for rule in policy.rules][:3] == [
        "reports", "writes-are-logged", "sql-exfiltration",
    ]  # fmt: skip
    assert [entry.calls for entry in policy.limits] == [100]
    assert found.stderr.startswith(f"warning: {SHARED}:9:27: ")


def test_the_policy_is_written_once(tmp_path: Path) -> None:
    out = tmp_path / "policy.yaml"
    found = run(SHARED, "--calls", "none", "--to", out)
    assert (found.return_value, found.stdout) == (0, "")
    assert parse_policy([SourceFile("written", out.read_bytes())]).limits == ()
    written = out.read_bytes()
    found = run(SHARED, "--to", out)
    assert isinstance(found.exception, McpwrapError)
    assert found.exception.code == "E-POLICY-CONVERT-EXISTS"
    assert out.read_bytes() == written


def test_the_report_is_json(tmp_path: Path) -> None:
    report = json.JSONDecoder().decode(run(SHARED, "--json").stdout)
    assert report["flaws"] == []
    assert [warning["code"] for warning in report["warnings"]] == ["E-POLICY-SENTINEL-ASCII"]
    assert report["rules"][0] == {"name": "reports", "line": 4}
    assert len(parse_policy([SourceFile("report", report["policy"].encode())]).rules) == 7
    bad = tmp_path / "bad.yaml"
    bad.write_text("rulez: []")
    found = run(bad, "--json")
    report = json.JSONDecoder().decode(found.stdout)
    assert found.return_value == 2
    assert [flaw["code"] for flaw in report["flaws"]] == ["E-POLICY-UNKNOWN-KEY"]
    assert report["policy"] == ""


def test_a_file_with_errors_is_converted_to_nothing(tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.yaml", tmp_path / "out.yaml"
    bad.write_text("rules: [{target_tool: t, target_argument: a, action: deny}]")
    found = run(bad, "--to", out)
    assert isinstance(found.exception, PolicyError)
    assert (found.stdout, out.exists()) == ("", False)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--server", "a b"), "E-POLICY-GLOB"),
        (("--calls", "100/day"), "E-POLICY-RATE"),
        (("--to", "/proc/none/x"), "E-FILE-ACCESS"),
    ],
)
def test_wrong_options(options: tuple[str, str], code: str) -> None:
    found = run(SHARED, *options)
    assert isinstance(found.exception, McpwrapError)
    assert found.exception.code == code
