"""`mcpwrap wrap` of entries that need the project that is open."""

import hashlib
import json
from pathlib import Path

import pytest

from mcpwrap.config import value_parsers
from mcpwrap.config.model import Local, Workspace
from tests.unit.cli.agents.wrap.wrapping import STUB, entries, put, run
from tests.unit.cli.root import Root

HERE = {"command": "true", "args": ["--repository", "."]}
OPEN = {"command": "true", "args": ["--root=${workspaceFolder}"]}


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up a home with two repositories side by side. It is in /tmp, which has no workspaces."""
    monkeypatch.setattr(value_parsers, "_NO_WORKSPACE", ())
    for name in ("a", "b"):
        (home / "src" / name / ".git").mkdir(parents=True)
    monkeypatch.chdir(home / "src/a")
    return home


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def listed(root: Root, name: str) -> tuple[Workspace, ...]:
    return root.servers[name].projects


def src(home: Path) -> tuple[Workspace, ...]:
    return (Workspace(f"{home}/src", is_writable=True),)


def test_a_file_of_a_project_and_one_for_all(root: Root, home: Path) -> None:
    file = put(home / "src/a/.mcp.json", local=HERE, unknown={"command": "true"})
    all_ = put(home / ".claude.json", open=OPEN, plain={"command": "true", "args": ["x"]})
    known = {"mcpServers": entries(all_), "projects": {f"{home}/src/{n}": {} for n in "ab"}}
    all_.write_text(json.dumps(known))
    done = run("claude-code", "--yes", "--sha256", digest(file))
    assert done.return_value == 0, done.output
    for name in ("local", "unknown", "open"):
        assert listed(root, name) == src(home)
        assert root.servers[name].workspace == ()
    assert listed(root, "plain") == ()
    runs = root.servers["open"].runs
    assert isinstance(runs, Local)
    assert runs.args == ("--root=${PROJECT}",)
    note = f"it may write the project in {home}/src in which its agent starts it"
    assert done.output.count(note) == 3
    assert entries(file)["local"] == {"command": STUB, "args": ["local"]}


def test_the_variable_of_the_agent_that_started_this_is_not_the_entrys(
    root: Root, home: Path
) -> None:
    entry = {"command": "true", "args": ["${CLAUDE_PROJECT_DIR}"]}
    put(home / ".cursor/mcp.json", one=entry)
    done = run("cursor", "--yes", CLAUDE_PROJECT_DIR="/elsewhere")
    runs = root.servers["one"].runs
    assert isinstance(runs, Local)
    assert runs.args == (".",)
    line = f'/etc/mcpwrap/conf.d/one.toml, as `projects = ["{home}/src:rw"]`'
    assert line in done.output


def test_equal_entries_of_two_projects_are_one_server(root: Root, home: Path) -> None:
    (home / "work/c/.git").mkdir(parents=True)
    file = home / ".claude.json"
    tables = {f"{home}/{path}": {"mcpServers": {"one": HERE}} for path in ("src/a", "work/c")}
    file.write_text(json.dumps({"projects": tables}))
    assert run("claude-code", "--yes").return_value == 0
    both = [Workspace(f"{home}/{name}", is_writable=True) for name in ("src", "work")]
    assert list(listed(root, "one")) == both
    assert list(root.servers) == ["one"]


def test_an_existing_server_is_used_and_what_it_does_not_see_is_said(
    root: Root, home: Path
) -> None:
    put(home / ".cursor/mcp.json", one=HERE)
    assert run("cursor", "--yes").return_value == 0
    file = put(home / "src/a/.mcp.json", one=HERE)
    done = run("claude-code", "--yes", "--sha256", digest(file))
    assert done.return_value == 0
    assert list(root.servers) == ["one"]
    assert (
        f"'one' of {file} leads to one, which exists already and sees no project in {home}/src:"
        f' root can add `projects = ["{home}/src:rw"]`'
    ) in done.output


def test_a_project_that_cannot_be_listed_has_its_folder_as_before(root: Root, home: Path) -> None:
    """It is directly in the home, and not a repository: listed, it would be no project."""
    file = put(home / "plain/.mcp.json", one=HERE)
    assert (
        run("claude-code", "--file", str(file), "--sha256", digest(file), "--yes").return_value == 0
    )
    server = root.servers["one"]
    assert isinstance(server.runs, Local)
    folder = f"{home}/plain"
    assert (server.runs.cwd, server.projects) == (folder, ())
    assert server.workspace == (Workspace(folder, is_writable=True),)


def test_a_url_needs_no_project(root: Root, home: Path) -> None:
    url = {"command": "npx", "args": ["mcp-remote", "https://x.example/mcp"]}
    file = put(home / "src/a/.mcp.json", far=url)
    assert run("claude-code", "--yes", "--sha256", digest(file)).return_value == 0
    assert listed(root, "far") == ()
