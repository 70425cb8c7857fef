"""`mcpwrap policy default` as typed."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.policy import default_policy
from mcpwrap.cli.policy.command import command
from mcpwrap.core.policy.default_policy import short_names
from mcpwrap.errors import McpwrapError
from mcpwrap.machine import policy_files
from mcpwrap.machine.default_policy import shipped

NAMES = short_names(shipped.load())


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make root's policy folder."""
    folder = tmp_path / "etc/policy.d"
    folder.mkdir(parents=True)
    monkeypatch.setattr(policy_files, "FILE", str(tmp_path / "etc/policy.yaml"))
    monkeypatch.setattr(policy_files, "FOLDER", str(folder))
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Return the file of a user."""
    return tmp_path / "home/.config/mcpwrap/policy.d/default-policy.yaml"


def run(tmp_path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(
        command,
        ["default", *arguments],
        standalone_mode=False,
        obj={"HOME": str(tmp_path / "home")},
    )


def states(tmp_path: Path, *arguments: str) -> dict[str, tuple[str, list[str]]]:
    rows = json.JSONDecoder().decode(run(tmp_path, "show", "--json", *arguments).output)
    return {row["rule"]: (row["state"], row["by"]) for row in rows}


def test_show_lists_each_rule_and_what_it_does(etc: Path, tmp_path: Path) -> None:
    lines = run(tmp_path, "show").output.splitlines()
    assert len(lines) == 2 * len(NAMES)
    at = lines.index("delete-tools: enabled; since 0.2.0")
    assert lines[at + 1].startswith("  asks a person for approval of calls of *delete_project, ")
    assert lines[at + 1].endswith(": Deletes what cannot be brought back.")
    at = lines.index("limits: enabled; since 0.2.0")
    assert lines[at + 1].startswith("  600 calls in 60 s, 30 identical calls in 120 s")
    one = run(tmp_path, "show", "default.delete-tools").output.splitlines()
    assert one[0] == "delete-tools: enabled; since 0.2.0"
    assert len(one) == 2


def test_show_names_the_file_that_disables(etc: Path, tmp_path: Path) -> None:
    assert states(tmp_path) == {name: ("enabled", []) for name in NAMES}
    (etc / "a.yaml").write_text(
        "version: 1\ndefault_policy: {disabled: [{rule: limits}, {rule: force-push, server: g*}]}\n"
    )
    found = states(tmp_path)
    assert found["limits"] == ("disabled", [str(etc / "a.yaml")])
    assert found["force-push"] == ("disabled for g*", [str(etc / "a.yaml")])
    assert found["delete-tools"] == ("enabled", [])
    assert states(tmp_path, "--server", "git")["force-push"][0] == "disabled"
    assert states(tmp_path, "--server", "time")["force-push"][0] == "enabled"
    (etc / "b.yaml").write_text("version: 1\ndefault_policy: disabled\n")
    assert {state for state, _ in states(tmp_path).values()} == {"disabled"}


def test_a_user_disables_and_enables_rules_of_run(own: Path, tmp_path: Path) -> None:
    done = run(tmp_path, "disable", "force-push", "--user")
    assert done.return_value == 0
    assert done.output == (
        "default.force-push is disabled for all servers, "
        "in sessions of `mcpwrap run` that start from now on\n"
    )
    assert own.stat().st_mode & 0o777 == 0o600
    assert states(tmp_path, "--user")["force-push"] == ("disabled", [str(own)])
    run(tmp_path, "disable", "limits", "--server", "git", "--user")
    assert states(tmp_path, "--user")["limits"][0] == "disabled for git"
    run(tmp_path, "enable", "force-push", "--user")
    assert states(tmp_path, "--user")["force-push"][0] == "enabled"
    run(tmp_path, "disable", "--user")
    assert {state for state, _ in states(tmp_path, "--user").values()} == {"disabled"}
    run(tmp_path, "enable", "--user")
    assert {state for state, _ in states(tmp_path, "--user").values()} == {"enabled"}


def test_what_is_wrong_changes_nothing(own: Path, tmp_path: Path) -> None:
    found = run(tmp_path, "disable", "force-pull", "--user")
    assert "did you mean `force-push`?" in str(found.exception)
    own.parent.mkdir(parents=True)
    own.write_text("version: 1\nrules: []\ndefault_policy: disabled\n")
    before = own.read_text()
    found = run(tmp_path, "enable", "--user")
    assert isinstance(found.exception, McpwrapError)
    assert own.read_text() == before
    own.unlink()
    own.parent.rmdir()
    own.parent.write_text("")
    found = run(tmp_path, "disable", "--user")
    assert "Not a directory" in str(found.exception)


def test_roots_file_is_written_by_roots_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    typed: list[str] = []

    def executed(*arguments: str, command: str) -> None:
        asked.append(arguments)
        typed.append(command)
        raise SystemExit

    monkeypatch.setattr(default_policy, "become_root_program", executed)
    run(tmp_path, "disable")
    run(tmp_path, "enable", "default.force-push", "--server", "git")
    run(tmp_path, "disable", "force-pull")  # refused before root's program is asked
    assert asked == [
        ("policy-default", "disable", "*", "*"),
        ("policy-default", "enable", "force-push", "git"),
    ]
    assert typed == [
        "policy default disable",
        "policy default enable default.force-push --server git",
    ]


def test_all_have_help_with_an_example(tmp_path: Path) -> None:
    for verb in ((), ("show",), ("disable",), ("enable",)):
        assert "mcpwrap policy default" in run(tmp_path, *verb, "--help").output
