"""Every known agent: wrapped, wrapped again, and back to the original bytes."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.agents import clients
from mcpwrap.cli.agents.unwrap import command as unwrap_command
from mcpwrap.cli.agents.wrap import command as wrap_command
from mcpwrap.config.agent_files.known_agents import BY_ID
from mcpwrap.config.agent_files.syntax.document import Language
from mcpwrap.machine.agent_files import programs
from tests.unit.cli.root import Root
from tests.unit.config.agent_files.files import FIXTURES, read_otherwise


def _in_front(content: bytes) -> bytes:
    """Insert a key before all others of a JSON file."""
    at = content.index(b"{") + 1
    return content[:at] + b'"addedSince": {"a": [1, 2]},' + content[at:]


def _at_the_end(content: bytes) -> bytes:
    """Append a comment to a TOML or YAML file."""
    return content + b"# added since\n"


Later = tuple[Callable[[bytes], bytes], Language]
LATER: dict[str, Later] = {
    "json": (_in_front, "json"),
    "jsonc": (_in_front, "json"),
    "toml": (_at_the_end, "toml"),
    "yaml": (_at_the_end, "yaml"),
}
PROGRAMS = ("npx", "uvx", "node", "python3", "docker", "uv")


@pytest.fixture(params=FIXTURES, ids=lambda path: path.stem)
def agent(request: pytest.FixtureRequest) -> str:
    """Return the name of an agent."""
    stem: str = request.param.stem
    return stem


@pytest.fixture
def file(agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up an account with this agent's file, and the programs that the file names."""
    home = tmp_path / "home"
    (home / "shop").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "shop")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name in PROGRAMS:
        (bin_ / name).write_text("#!/bin/sh\n")
        (bin_ / name).chmod(0o755)
    monkeypatch.setattr(programs, "_EVERYBODYS", ("/usr", "/bin", str(bin_)))  # like /usr
    file = Path(BY_ID[agent].files[0].place({"HOME": str(home)}))
    file.parent.mkdir(parents=True, exist_ok=True)
    (fixture,) = (path for path in FIXTURES if path.stem == agent)
    file.write_bytes(fixture.read_bytes())
    file.chmod(0o640)
    (home / ".env").write_text("FROM_FILE=s3cr3t\n")
    return file


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    return Root.that_agrees(tmp_path / "root", monkeypatch)


def run(command: click.Command, *arguments: str) -> Result:
    environ = {"PATH": f"{Path.home().parent}/bin"}
    return CliRunner().invoke(command, arguments, standalone_mode=False, obj=environ)


def states(file: Path) -> dict[str, list[str]]:
    """Return the names of servers by their state in `mcpwrap clients`."""
    rows = json.loads(run(clients.command, "--json").stdout)["files"]
    (row,) = (row for row in rows if row["path"] == str(file))
    found: dict[str, list[str]] = {}
    for server in row["servers"]:
        found.setdefault(server["state"], []).append(server["name"])
    return found


def test_there_and_back(agent: str, file: Path, root: Root) -> None:
    before = file.read_bytes()
    raw = states(file)
    done = run(wrap_command.command, agent, "--yes")
    proposal = (root.folder / "proposal").read_text()
    for shown in (done.output, proposal):
        assert "s3cr3t" not in shown.replace("/srv/s3cr3t.db", "")  # a name in an argument
    after = states(file)
    left = re.findall(r"^left as it is: (.*?) \(", done.output, re.MULTILINE)
    print(f"{agent}: wrapped {after['wrapped']}, left {left}")
    wrapped_now = [name for name in after["wrapped"] if name not in raw.get("wrapped", [])]
    assert wrapped_now, done.output
    assert sorted(raw["raw"]) == sorted([*wrapped_now, *after.get("raw", [])])
    assert set(after.get("raw", [])) <= set(left)
    assert left or "s3cr3t" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o640

    wrapped = file.read_bytes()
    assert run(wrap_command.command, agent, "--yes").output.endswith(("nothing to do\n", "to do\n"))
    assert file.read_bytes() == wrapped

    back = run(unwrap_command.command, agent, "--yes")
    assert (back.return_value, file.read_bytes()) == (0, before)
    assert file.stat().st_mode & 0o777 == 0o640


def test_what_changed_in_between_stays(agent: str, file: Path, root: Root) -> None:
    before = file.read_bytes()
    run(wrap_command.command, agent, "--yes")
    more, language = LATER[file.suffix.removeprefix(".")]
    wrapped = file.read_bytes()
    file.write_bytes(more(wrapped))
    assert file.read_bytes() != wrapped
    back = run(unwrap_command.command, agent, "--yes")
    assert back.return_value == 0
    assert "was changed since" in back.output
    assert file.read_bytes() == more(before)
    assert read_otherwise(language, file.read_bytes())


def test_ten_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Root) -> None:
    """Claude Code stores its prompts in the same file; some have duplicate names in it too."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    entry = {"command": "sh", "env": {"API_KEY": "s3cr3t-s3cr3t"}}
    other = {"command": "sh", "env": {"API_KEY": "an0ther-s3cr3t"}}
    projects = {
        "/home/alice/shop": {"mcpServers": {"one": other}, "history": ["x" * 999] * 10_000},
        "/home/alice/blog": {"mcpServers": {"one": entry}},
    }
    file = home / ".claude.json"
    file.write_text(json.dumps({"mcpServers": {"one": entry}, "projects": projects}, indent=1))
    before = file.read_bytes()
    assert len(before) > 10_000_000
    done = CliRunner().invoke(
        wrap_command.command,
        ["claude-code", "--yes"],
        standalone_mode=False,
        obj={"PATH": "/usr/bin"},
    )
    assert done.return_value == 0
    assert sorted(root.servers) == ["one", "one-2"]
    assert b"s3cr3t" not in file.read_bytes()
    assert run(unwrap_command.command, "claude-code", "--yes").return_value == 0
    assert file.read_bytes() == before
