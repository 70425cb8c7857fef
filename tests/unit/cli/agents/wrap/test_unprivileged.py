"""`mcpwrap wrap --unprivileged`: its output, written files, and the way back."""

import hashlib
import json
import os
import stat
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.agents import clients
from mcpwrap.cli.agents.discovery import file_owner, known
from mcpwrap.cli.agents.unwrap import command as unwrap_command
from mcpwrap.cli.agents.wrap import command
from mcpwrap.errors import UsageError
from mcpwrap.machine.agent_files import wrap_records
from tests.unit.cli.agents.wrap.wrapping import (
    RAW,
    REMOTE,
    STUB,
    change_when_agreed,
    entries,
    put,
)
from tests.unit.cli.agents.wrap.wrapping import run as run_wrap
from tests.unit.cli.root import Root

LINE = [
    "run",
    "--name",
    "local",
    "--inherit",
    "API_KEY",
    "--inherit",
    "L",
    "--",
    "sh",
    "-c",
    "true",
]


@pytest.fixture
def mcpwrap(root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of the installed program that runs; the commands find lines of it."""
    program = tmp_path / "venv/bin/mcpwrap"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    for module in (command, clients, unwrap_command):
        monkeypatch.setattr(module, "known", known)
    return str(program)


def run(*arguments: str) -> Result:
    return run_wrap("--unprivileged", *arguments)


def unwrap(*arguments: str) -> Result:
    return CliRunner().invoke(
        unwrap_command.command, arguments, standalone_mode=False, obj={"PATH": "/usr/bin"}
    )


def states() -> dict[str, tuple[str, str]]:
    environ = {"PATH": "/usr/bin"}
    who = file_owner(os.geteuid(), Path.cwd(), environ)
    rows = clients.file_rows(who, known(who))
    return {one.name: (one.state, one.server) for row in rows for one in row.servers}


def test_there_and_back(mcpwrap: str, root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW, box={"command": "docker", "args": ["run"]})
    before = file.read_bytes()
    done = run("cursor", "--yes")
    assert done.return_value == 1  # one is left
    assert entries(file) == {
        "local": {"command": mcpwrap, "args": LINE, "env": RAW["env"]},
        "box": {"command": "docker", "args": ["run"]},
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert "left as it is: box (Cursor, " in done.output
    assert "[E-MIGRATE-CONTAINER]" in done.output
    assert "has no network; to allow that, write `--network` before `--`" in done.output
    assert "man mcpwrap-run" in done.output
    assert "sudo" not in done.output
    assert "s3cr3t" not in done.output
    assert not (root.folder / "asked").exists()
    assert states() == {"local": ("run", "local"), "box": ("raw", "box")}

    after = file.read_bytes()
    again = run("cursor", "--yes")
    assert (again.return_value, file.read_bytes()) == (1, after)
    assert again.output.endswith("nothing else to do\n")

    back = unwrap("cursor", "--yes")
    assert (back.return_value, file.read_bytes()) == (0, before)
    assert "These servers stay" not in back.output
    assert states()["local"][0] == "raw"


def test_twice_changes_nothing(mcpwrap: str, home: Path) -> None:
    put(home / ".cursor/mcp.json", local=RAW)
    assert run("cursor", "--yes").return_value == 0
    again = run("cursor", "--yes")
    assert (again.return_value, again.output) == (0, "nothing to do\n")


@pytest.mark.usefixtures("mcpwrap")
def test_looking_changes_nothing(home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW)
    before = file.read_bytes()
    done = run("--all", "--dry-run")
    assert done.return_value == 0
    assert '"--inherit", "API_KEY"' in done.output
    assert file.read_bytes() == before
    assert not (home / ".local").exists()
    assert isinstance(run("cursor").exception, UsageError)  # without a yes


def test_a_url_becomes_a_program(mcpwrap: str, home: Path) -> None:
    file = put(home / ".claude.json", far=REMOTE)
    assert run("claude-code", "--yes").return_value == 0
    line = ["run", "--name", "far", "--url", REMOTE["url"], "--bearer-from", "BEARER_TOKEN"]
    assert entries(file)["far"] == {
        "type": "stdio",
        "command": mcpwrap,
        "args": line,
        "env": {"BEARER_TOKEN": "t0p"},
    }
    again = run("claude-code", "--yes")
    assert again.output == "nothing to do\n"


def test_names_are_shared_by_equal_servers_alone(mcpwrap: str, home: Path) -> None:
    """A server never gets the home of another, which chose what is in it."""
    other = {"command": "sh", "args": ["-c", "false"]}
    here = {**other, "cwd": "/"}
    put(home / ".cursor/mcp.json", one=RAW, two=RAW)
    put(home / ".kiro/settings/mcp.json", one=RAW)
    assert run("cursor", "kiro", "--yes").return_value == 0
    put(home / ".gemini/settings.json", one=other)
    put(home / ".qwen/settings.json", One=other, one=here)
    put(home / ".claude.json", one=REMOTE)
    assert run("--all", "--yes").return_value == 0

    def name(file: str, entry: str = "one") -> object:
        found = entries(home / file)[entry]
        assert found["command"] == mcpwrap
        args = found["args"]
        assert isinstance(args, list)
        return args[2]

    assert name(".cursor/mcp.json") == name(".kiro/settings/mcp.json") == "one"
    assert name(".cursor/mcp.json", "two") == "two"
    names = {name(".claude.json"), name(".gemini/settings.json"), name(".qwen/settings.json")}
    assert names == {"one-2", "one-3", "one-4"}
    assert name(".qwen/settings.json", "One") == name(".gemini/settings.json")


def test_json(mcpwrap: str, home: Path) -> None:
    put(home / ".cursor/mcp.json", local=RAW)
    planned = json.loads(run("cursor", "--json", "--dry-run").output)
    assert [planned["done"], planned["new"], planned["proposal"]] == [False, [], None]
    (server,) = planned["files"][0]["servers"]
    assert (server["state"], server["server"], server["is_new"]) == ("raw", "local", False)
    done = json.loads(run("cursor", "--json", "--yes").output)
    (server,) = done["files"][0]["servers"]
    assert (done["done"], server["state"], server["server"]) == (True, "run", "local")
    again = json.loads(run("cursor", "--json", "--yes").output)
    assert again["done"]


@pytest.mark.usefixtures("mcpwrap")
@pytest.mark.parametrize("option", [("--egress", "x.example"), ("--hub", "tools")])
def test_options_of_root_are_refused(home: Path, option: tuple[str, str]) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW)
    refused = run("cursor", "--yes", *option).exception
    assert isinstance(refused, UsageError)
    assert "E-WRAP-RUN-OPTION" in str(refused)
    assert entries(file) == {"local": RAW}


def test_a_program_that_others_can_change_is_not_written(mcpwrap: str, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW)
    Path(mcpwrap).chmod(0o757)
    refused = run("cursor", "--yes").exception
    assert "E-WRAP-OWN-PROGRAM-WRITABLE" in str(refused)
    assert entries(file) == {"local": RAW}
    Path(mcpwrap).chmod(0o755)
    assert run("cursor", "--yes").return_value == 0  # the twin


def test_a_file_of_a_project_is_named_with_the_command_that_approves_it(
    mcpwrap: str, home: Path
) -> None:
    file = put(home / "shop/.mcp.json", local=RAW)
    shown = run("claude-code", "--yes").output
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    line = f"mcpwrap wrap --unprivileged claude-code --file {file} --sha256 {digest}"
    assert line in shown
    done = run(*line.split()[3:], "--yes")
    assert done.return_value == 0
    assert entries(file)["local"]["command"] == mcpwrap


def test_what_leads_to_root_s_servers_is_left(mcpwrap: str, home: Path) -> None:
    stub = {"command": STUB, "args": ["gone"]}
    other = {"command": "/proj/bin/mcpwrap", "args": ["run", "x"]}
    file = put(home / ".cursor/mcp.json", stub=stub, other=other, odd={"command": 1}, local=RAW)
    file.chmod(0o440)
    shown = run("cursor", "--yes").output
    assert "left as it is: stub" in shown
    assert "no server 'gone' was applied" in shown
    assert "'/proj/bin/mcpwrap' is not this mcpwrap" in shown
    assert "`command` is a number, not text [E-AGENT-ENTRY]" in shown
    assert "is read-only" in shown
    assert entries(file)["local"] == RAW
    assert states()["other"] == ("raw", "other")


def test_a_file_that_changes_meanwhile_is_not_written(
    mcpwrap: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW)
    change_when_agreed(monkeypatch, file)
    done = run("cursor", "--yes")
    assert done.return_value == 1
    assert "was changed in the meantime" in done.output
    assert entries(file) == {"local": RAW}
    assert wrap_records.records(home / ".local/state/mcpwrap") == []


def test_a_new_token_in_the_file_stays(mcpwrap: str, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW)
    assert run("cursor", "--yes").return_value == 0
    text = file.read_text()
    file.write_text(text.replace("s3cr3t-s3cr3t", "n3w").replace('"run",', '"run", "--network",'))
    assert unwrap("cursor", "--yes").return_value == 0
    assert entries(file) == {"local": {**RAW, "env": {"API_KEY": "n3w", "L": "info"}}}


def test_root_wraps_it_later(mcpwrap: str, root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW)
    before = file.read_bytes()
    assert run("cursor", "--yes").return_value == 0
    done = run_wrap("cursor", "--yes")
    assert done.return_value == 0, done.output
    assert entries(file) == {"local": {"command": STUB, "args": ["local"]}}
    assert root.secrets() == {"local": {"API_KEY": "s3cr3t-s3cr3t"}}
    assert 'command = "/usr/bin/sh"' in (root.folder / "proposal").read_text()
    assert unwrap("cursor", "--yes").return_value == 0
    assert file.read_bytes() == before


def test_an_environment_of_uv_is_given(mcpwrap: str, home: Path) -> None:
    python = home / "python/bin/python3"
    tool = home / "bin/uv"
    for program in (python, tool):
        program.parent.mkdir(parents=True)
        program.write_text("\x7fELF")
        program.chmod(0o755)
    (home / "python/lib").mkdir()
    (home / "shop/.venv/bin").mkdir(parents=True)
    (home / "shop/.venv/bin/python").symlink_to(python)
    args = ["--directory", str(home / "shop"), "run", "x"]
    file = put(home / ".cursor/mcp.json", local={"command": str(tool), "args": args})
    assert run("cursor", "--yes").return_value == 0
    written = entries(file)["local"]["args"]
    assert isinstance(written, list)
    given = " ".join(written[: written.index("--")])
    assert f"--network --read {home}/python --write {home}/shop" in given


def test_a_folder_with_mcpwrap_itself_is_not_given(mcpwrap: str, home: Path) -> None:
    entry = {"command": "sh", "args": [str(Path(mcpwrap).parents[1])]}
    file = put(home / ".cursor/mcp.json", local=entry)
    assert "[E-WRAP-RUN-OWN-CODE]" in run("cursor", "--yes").output
    assert entries(file) == {"local": entry}


def test_programs_that_list_files_know_the_lines_of_another_install(
    mcpwrap: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home / ".cursor/mcp.json", local=RAW)
    assert run("cursor", "--yes").return_value == 0
    monkeypatch.setattr(sys, "argv", ["/usr/bin/mcpwrap"])
    assert states()["local"] == ("run", "local")  # by its record
    assert unwrap("cursor", "--yes").return_value == 0
    hand = {"command": mcpwrap, "args": ["run", "sh"]}
    put(home / ".cursor/mcp.json", local=hand)
    assert states()["local"][0] == "raw"
    monkeypatch.setattr(sys, "argv", [mcpwrap])
    assert states()["local"] == ("run", "")  # the twin: the program that looks
