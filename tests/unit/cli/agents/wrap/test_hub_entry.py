"""`mcpwrap wrap --hub`: one entry in place of all, and `unwrap` afterwards."""

import json
from pathlib import Path

import pytest
import tomli
from click.testing import CliRunner, Result

from mcpwrap.cli.agents.unwrap import command as unwrap_command
from mcpwrap.config.model import Hub
from mcpwrap.errors import UsageError
from tests.unit.cli.agents.wrap.wrapping import RAW, REMOTE, STUB, entries, put, run
from tests.unit.cli.root import Root

CODEX = """\
model = "x"

[mcp_servers.one]
command = "sh"
args = ["-c", "true"]
env_vars = ["API_TOKEN"]

# keep this
[mcp_servers.two]
command = "sh"
args = ["-c", "exit"]

[other]
x = 1
"""


def unwrapped(*arguments: str) -> Result:
    environ = {"PATH": "/usr/bin:/bin"}
    return CliRunner().invoke(unwrap_command.command, arguments, standalone_mode=False, obj=environ)


def members(root: Root, hub: str) -> dict[str, str]:
    runs = root.servers[hub].runs
    assert isinstance(runs, Hub)
    return {member.name: member.namespace for member in runs.members}


def test_all_servers_of_an_agent_become_one_entry(root: Root, home: Path) -> None:
    file = put(home / ".claude.json", local=RAW, far=REMOTE, Odd={"command": "nothere"})
    before = file.read_bytes()
    done = run("claude-code", "--hub", "tools", "--yes")
    assert done.return_value == 1  # one is skipped, and stays in the file
    assert entries(file) == {
        "tools": {"command": STUB, "args": ["tools"]},
        "Odd": {"command": "nothere"},
    }
    assert members(root, "tools") == {"local": "local", "far": "far"}
    assert "write mcp__tools__local__* for mcp__local__*" in done.output
    for secret in ("s3cr3t", "t0p"):
        assert secret not in done.output
    assert unwrapped("claude-code", "--yes").return_value == 0
    assert file.read_bytes() == before


def test_wrapped_entries_become_members_too(root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW)
    run("cursor", "--yes")
    put(file, **entries(file), far=REMOTE)
    assert run("cursor", "--hub", "tools", "--yes").return_value == 0
    assert entries(file) == {"tools": {"command": STUB, "args": ["tools"]}}
    assert members(root, "tools") == {"local": "local", "far": "far"}


def test_wrapped_entries_alone(root: Root, home: Path) -> None:
    file = put(
        home / ".cursor/mcp.json", local=RAW, Odd={"command": "no", "env": {"K": "s3cr3t-x"}}
    )
    run("cursor", "--yes")
    done = run("cursor", "--hub", "tools", "--yes")
    assert entries(file).keys() == {"tools", "Odd"}
    assert "s3cr3t" not in done.output


def test_a_second_run_has_nothing_to_do(root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW)
    run("cursor", "--hub", "tools", "--yes")
    once = file.read_bytes()
    again = run("cursor", "--hub", "tools", "--yes")
    assert (again.return_value, file.read_bytes()) == (0, once)
    assert "nothing to do" in again.output


def test_a_file_that_was_changed_since_gets_its_entries_back(root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW, far=REMOTE)
    run("cursor", "--hub", "tools", "--yes")
    put(file, **entries(file), new={"command": "x"})
    done = unwrapped("cursor", "--yes")
    assert entries(file) == {"local": RAW, "far": REMOTE, "new": {"command": "x"}}
    assert "'local', 'far'" in done.output


@pytest.mark.parametrize(
    ("now", "left"),
    [
        ({}, "was removed from the file"),
        ({"tools": {"command": "mine"}}, "was changed since, and stays as it is"),
    ],
)
def test_an_entry_that_is_not_ours_any_more_stays(
    root: Root, home: Path, now: dict[str, object], left: str
) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW)
    run("cursor", "--hub", "tools", "--yes")
    put(file, **now)
    done = unwrapped("cursor", "--yes")
    assert entries(file) == now
    assert left in done.output


def test_an_entry_that_is_there_again_stays(root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW, far=REMOTE)
    run("cursor", "--hub", "tools", "--yes")
    put(file, **entries(file), local={"command": "mine"})
    assert "'local' is in the file again" in unwrapped("cursor", "--yes").output
    assert entries(file) == {"local": {"command": "mine"}, "far": REMOTE}


def test_toml_with_variables_of_the_agent(root: Root, home: Path) -> None:
    file = home / ".codex/config.toml"
    file.parent.mkdir()
    file.write_text(CODEX)
    done = run("codex", "--hub", "tools", "--yes")
    assert done.return_value == 0
    text = file.read_text()
    assert "# keep this" in text
    entry = {"command": STUB, "args": ["tools"], "env_vars": ["API_TOKEN"]}
    assert tomli.loads(text)["mcp_servers"] == {"tools": entry}
    file.write_text(text.replace("x = 1", "x = 2"))
    unwrapped("codex", "--yes")
    assert tomli.loads(file.read_text()) == tomli.loads(CODEX.replace("x = 1", "x = 2"))


def test_a_dry_run_shows_the_one_entry(root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW, far=REMOTE)
    before = file.read_bytes()
    done = run("cursor", "--hub", "tools", "--dry-run")
    assert "[mcp_servers.tools.members.far]" in done.output
    assert '+    "tools": {"command"' in done.output
    assert (file.read_bytes(), (root.folder / "asked").exists()) == (before, False)


def test_json_reports_what_was_written(root: Root, home: Path) -> None:
    put(home / ".cursor/mcp.json", local=RAW)
    found = json.loads(run("cursor", "--hub", "tools", "--yes", "--json").stdout)
    assert [new["name"] for new in found["new"]] == ["local", "tools"]
    assert (found["done"], found["files"][0]["is_written"]) == (True, True)


def test_two_lists_are_refused(root: Root, home: Path) -> None:
    put(home / ".cursor/mcp.json", local=RAW)
    put(home / ".claude.json", far=REMOTE)
    caught = run("--all", "--hub", "tools", "--yes").exception
    assert isinstance(caught, UsageError)
    assert caught.code == "E-WRAP-HUB-LISTS"
    assert run("cursor", "--hub", "tools", "--yes").return_value == 0


def test_another_entry_of_that_name_stays(root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW, tools={"command": "nothere"})
    before = file.read_bytes()
    done = run("cursor", "--hub", "tools", "--yes")
    assert "E-WRAP-HUB-ENTRY" in done.output
    assert file.read_bytes() == before


def test_an_agent_whose_servers_are_a_list(root: Root, home: Path) -> None:
    file = home / ".continue/config.yaml"
    file.parent.mkdir()
    file.write_text("mcpServers:\n  - name: one\n    command: sh\n    args: [-c, 'true']\n")
    assert "E-AGENT-FILE-LIST" in run("continue", "--hub", "tools", "--yes").output
