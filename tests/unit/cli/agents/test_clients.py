"""`mcpwrap clients` and `convert`: the servers found for an account, and the output."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import tomli
from click.testing import CliRunner, Result

from mcpwrap.cli.agents import clients, convert
from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.core.wire.listener_file import Listener
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.machine import listener_files, observer
from mcpwrap.plan import paths

STUB = "/usr/bin/mcpwrap-connect"
URL = "http://127.78.0.9:52100/"
GONE = "no server 'gone' was applied"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Machine on which `git` and `web` are applied, and `web` has a listener for this account."""
    home = tmp_path / "home"
    work = home / "shop/src"
    work.mkdir(parents=True)
    root = tmp_path / "root"
    root.mkdir()
    listener = Listener(server="web", uid=os.geteuid(), address="127.78.0.9", is_remote=True)
    other = Listener(server="git", uid=os.geteuid() + 1, address="127.78.0.8", is_remote=False)
    for number, one in enumerate((listener, other)):
        (root / f"{number}.json").write_bytes(msgspec.json.encode(one))
    (root / "odd.json").write_text("{}")
    (root / "git.spec").write_text('{"name": "git", "inherits": ["TZ"]}')
    monkeypatch.setattr(listener_files, "FOLDER", root)
    monkeypatch.setattr(listener_files, "read_roots_own", _bytes)
    monkeypatch.setattr(observer, "server_names", ["git", "web"].copy)
    monkeypatch.setattr(paths, "spec", lambda name: str(root / f"{name}.spec"))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(work)
    return home


def _bytes(path: str, *, max_bytes: int) -> bytes:
    return Path(path).read_bytes()[: max_bytes + 1]


def run(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(clients.command, arguments, standalone_mode=False, obj=environ)


def put(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def servers_json(**entries: object) -> str:
    return json.dumps({"mcpServers": entries})


WRAPPED = {"command": STUB, "args": ["git"]}


def test_without_files_it_says_so(home: Path) -> None:
    assert home.is_dir()
    found = run()
    assert found.return_value == 0
    assert (
        found.stdout
        == "no files of known agents were found: `man mcpwrap` lists the known agents\n"
    )
    assert json.loads(run("--json").stdout) == {"files": []}


def test_each_server_has_a_line(home: Path) -> None:
    put(
        home / ".claude.json",
        json.dumps(
            {
                "mcpServers": {"a": WRAPPED, "My Server!": {"command": "npx", "args": ["s3cr3t"]}},
                "projects": {"/p": {"mcpServers": {"b": {"command": STUB, "args": ["gone"]}}}},
            }
        ),
    )
    put(home / ".codex/config.toml", f'[mcp_servers.w]\nurl = "{URL}"\n')
    put(home / ".kiro/settings/mcp.json", "{}")
    found = run()
    assert found.return_value == 1
    assert found.stdout.splitlines() == [
        f"claude-code, user: {home}/.claude.json",
        "  a           wrapped: git",
        "  My Server!  raw: npx",
        f"  b (in /p)   drifted: {GONE}",
        f"codex, user: {home}/.codex/config.toml",
        "  w  wrapped: web",
        f"kiro, user: {home}/.kiro/settings/mcp.json",
        "  no servers",
    ]


def test_all_is_well_where_all_are_wrapped(home: Path) -> None:
    entry = {**WRAPPED, "env": {"TZ": "UTC"}}
    put(home / ".cursor/mcp.json", servers_json(a=entry, b={"odd": 1}))
    assert run().return_value == 0
    [file] = json.loads(run("--json").stdout)["files"]
    assert file == {
        "agents": ["cursor"],
        "scope": "user",
        "path": str(home / ".cursor/mcp.json"),
        "plugin": "",
        "problem": "",
        "servers": [
            _row(name="a", state="wrapped", server="git", kind="stdio", runs=STUB),
            _row(name="b", state="not understood", why="there is no `command` or `url`"),
        ],
    }


def _row(**known: str) -> dict[str, str]:
    keys = ("name", "project", "state", "server", "why", "kind", "runs")
    return dict.fromkeys(keys, "") | known


def test_nothing_that_may_be_a_secret_is_shown(home: Path) -> None:
    entry = {"command": "npx", "args": ["--token", "s3cr3t"], "env": {"A": "s3cr3t"}}
    url = {
        "type": "http",
        "url": "https://u:s3cr3t@x.example:8443/s3cr3t?k=s3cr3t",
        "headers": {"A": "s3cr3t"},
    }
    odd = {"type": "http", "url": "http://[s3cr3t"}
    put(home / ".claude.json", servers_json(a=entry, b=url, c=odd))
    for output in (run().stdout, run("--json").stdout):
        assert "https://x.example:8443" in output
        assert "s3cr3t" not in output


def test_names_are_shown_and_do_nothing(home: Path) -> None:
    put(home / ".claude.json", servers_json(**{"a\x1b[31m\n[bold]x": {"command": "x"}}))
    assert "a\\x1b[31m\\n[bold]x" in run().stdout
    [file] = json.loads(run("--json").stdout)["files"]
    assert file["servers"][0]["server"] == "a-31m-bold-x"


def test_raw_servers_are_given_names_that_are_free(home: Path) -> None:
    put(home / ".claude.json", servers_json(Git={"command": "x"}, GIT={"command": "y"}))
    [file] = json.loads(run("--json").stdout)["files"]
    assert [server["server"] for server in file["servers"]] == ["git-2", "git-3"]


def test_what_two_agents_read_in_two_ways_is_not_wrapped(home: Path) -> None:
    """Three agents read one file, and one would connect to a URL that the first does not read."""
    file = home / "shop/src/.mcp.json"
    put(file, servers_json(a={**WRAPPED, "httpUrl": "https://evil.example/"}, b=WRAPPED))
    found = run("--json")
    (row,) = json.loads(found.stdout)["files"]
    assert row["agents"] == ["claude-code", "copilot", "qwen"]
    assert [one["state"] for one in row["servers"]] == ["not understood", "wrapped"]
    assert row["servers"][0]["why"] == "Qwen Code reads it differently from Claude Code"


def test_a_program_that_path_has_in_place_of_the_stub(
    home: Path,
) -> None:
    other = put(home / "bin/mcpwrap-connect", "#!/bin/sh\n")
    other.chmod(0o755)
    by_name = {"command": "mcpwrap-connect", "args": ["git"]}
    put(home / ".cursor/mcp.json", servers_json(a=by_name, b=WRAPPED))
    found = run("--json", PATH=f"{other.parent}:/usr/bin")
    (row,) = json.loads(found.stdout)["files"]
    assert [one["state"] for one in row["servers"]] == ["drifted", "wrapped"]
    assert str(other) in row["servers"][0]["why"]


def test_files_of_a_project_are_found_up_to_its_top(home: Path) -> None:
    put(home / ".mcp.json", servers_json(above={"command": "x"}))
    put(home / "shop/.mcp.json", servers_json(top={"command": "x"}))
    put(home / "shop/src/.mcp.json", servers_json(here={"command": "x"}))
    here = json.loads(run("--json").stdout)["files"]
    assert [file["servers"][0]["name"] for file in here] == ["here"]
    (home / "shop/.git").mkdir()
    both = json.loads(run("--json").stdout)["files"]
    assert [file["servers"][0]["name"] for file in both] == ["here", "top"]
    assert both[0]["agents"] == ["claude-code", "copilot", "qwen"]
    assert both[0]["scope"] == "project"


def test_the_environment_says_where_files_are(home: Path, tmp_path: Path) -> None:
    put(tmp_path / "c/.claude.json", servers_json(c={"command": "x"}))
    put(home / "shop/src/rel/config.toml", "[mcp_servers.r]\ncommand = 'x'\n")
    found = run("--json", CLAUDE_CONFIG_DIR=str(tmp_path / "c"), CODEX_HOME="rel")
    files = json.loads(found.stdout)["files"]
    assert [file["path"] for file in files] == [
        str(tmp_path / "c/.claude.json"),
        str(home / "shop/src/rel/config.toml"),
    ]


def _link(home: Path) -> None:
    (home / ".claude.json").symlink_to(put(home / "dotfiles/claude.json", "{}"))


def _loop(home: Path) -> None:
    (home / ".cursor").symlink_to(home / ".cursor")


def _folder(home: Path) -> None:
    (home / ".claude.json").mkdir()


def _pipe(home: Path) -> None:
    os.mkfifo(home / ".claude.json")


def _broken(home: Path) -> None:
    put(home / ".claude.json", '{\n  "mcpServers": {,}\n}')


def _repeated(home: Path) -> None:
    put(home / ".claude.json", '{"a": 1, "a": 2}')


def _long(home: Path) -> None:
    put(home / ".claude.json", " " * (16 * 2**20 + 1))


def _long_in_a_project(home: Path) -> None:
    put(home / "shop/src/.mcp.json", " " * (2**20 + 1))


def _elsewhere(home: Path) -> None:
    put(home / ".ssh/mcp.json", "{}")
    (home / "shop/src/.cursor").symlink_to(home / ".ssh")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (_link, "is a symbolic link to '{home}/dotfiles/claude.json', which is not followed"),
        (_loop, "cannot be read: Too many levels of symbolic links"),
        (_folder, "is not a plain file"),
        (_pipe, "is not a plain file"),
        (_broken, "2:18: not JSON: Expecting property name enclosed in double quotes"),
        (_repeated, "1:10: 'a' appears twice in one object"),
        (_long, "over 16 MiB"),
        (_long_in_a_project, "over 1 MiB"),
        (_elsewhere, "leads to '{home}/.ssh/mcp.json', outside the folder that it belongs to"),
    ],
)
def test_a_file_that_is_not_read_is_reported(
    home: Path, make: Callable[[Path], None], problem: str
) -> None:
    make(home)
    found = run()
    assert found.return_value == 1
    assert found.stderr.splitlines()[0].endswith(f": {problem.format(home=home)}")
    assert json.loads(run("--json").stdout)["files"][0]["problem"] == problem.format(home=home)


def test_a_file_of_another_account_is_not_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(home / ".claude.json", servers_json(a=WRAPPED))
    owner = (home / ".claude.json").stat().st_uid
    if owner == 0:  # root's own files are read by any account
        os.chown(home / ".claude.json", 4242, -1)
        owner = 4242
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    [file] = json.loads(run("--json").stdout)["files"]
    assert file["problem"].startswith("belongs to ")
    assert file["servers"] == []


CONFIG = """
[mcp_servers.git]
command = "/usr/bin/git-mcp"

[mcp_servers.web]
url = "https://x.example/mcp"
"""


def converted(*arguments: str) -> Result:
    environ = {"PATH": "/usr/bin:/bin"}
    return CliRunner().invoke(convert.command, arguments, standalone_mode=False, obj=environ)


def test_a_configuration_becomes_what_an_agent_needs(home: Path) -> None:
    file = str(put(home / "config.toml", CONFIG))
    assert (
        converted(file, "--client", "codex").stdout
        == f"""\
[mcp_servers.git]
command = "{STUB}"
args = ["git"]

[mcp_servers.web]
command = "{STUB}"
args = ["web"]
"""
    )
    found = json.loads(converted(file, "--client", "claude-code", "--http").stdout)
    assert found == {
        "mcpServers": {
            "git": {"command": STUB, "args": ["git"]},
            "web": {"type": "http", "url": URL},
        }
    }
    # This agent only starts programs.
    found = json.loads(converted(file, "--client", "claude-desktop", "--http").stdout)
    assert found["mcpServers"]["web"] == {"command": STUB, "args": ["web"]}


def test_the_same_for_machines(home: Path) -> None:
    file = str(put(home / "config.toml", CONFIG))
    found = json.loads(converted(file, "--client", "goose", "--json").stdout)
    assert found["client"] == "goose"
    assert found["files"] == [{"scope": "user", "path": "$XDG_CONFIG_HOME/goose/config.yaml"}]
    assert found["servers"]["git"] == {
        "name": "git",
        "type": "stdio",
        "cmd": STUB,
        "args": ["git"],
        "enabled": True,
    }
    assert found["text"].startswith("extensions:\n  git:\n    name: git\n")


def test_a_file_that_cannot_be_converted_is_an_error(home: Path) -> None:
    assert isinstance(converted(str(home / "no"), "--client", "zed").exception, UsageError)
    broken = put(home / "config.toml", "[mcp_servers.git]\n")
    error = converted(str(broken), "--client", "zed").exception
    assert isinstance(error, McpwrapError)
    assert "needs exactly one of `command`, `url`" in str(error)
    assert "is not one of" in str(converted(str(broken), "--client", "x").exception)


def test_a_server_that_a_plugin_brings_is_shown_with_what_to_do(home: Path) -> None:
    plugin = home / "shop/helper"
    put(plugin / ".mcp.json", servers_json(db={"command": "npx"}, git=WRAPPED))
    record = [{"scope": "user", "installPath": str(plugin)}]
    registry = json.dumps({"plugins": {"helper@m": record}})
    put(home / ".claude/plugins/installed_plugins.json", registry)
    found = run()
    assert found.return_value == 1
    advice = (
        f"    turn it off in the agent ({home}/.claude/settings.json: "
        '"deniedMcpServers": [{"serverName": "plugin:helper:db"}]), and list the server under'
        " another name in the agent's own file, for `mcpwrap wrap`, or in /etc/mcpwrap/config.toml"
    )
    assert found.stdout.splitlines() == [
        f"claude-code, plugin helper@m: {plugin}/.mcp.json",
        "  db   raw: npx",
        advice,
        "  git  wrapped: git",
    ]
    [file] = json.loads(run("--json").stdout)["files"]
    assert (file["scope"], file["plugin"]) == ("plugin", "helper@m")
    assert file["servers"][0] == _row(
        name="db", state="raw", server="db", why=advice.strip(), kind="stdio", runs="npx"
    )


def test_a_server_that_is_off_is_well(home: Path) -> None:
    extension = home / ".gemini/extensions/docs/gemini-extension.json"
    put(extension, servers_json(db={"command": "npx"}))
    put(home / ".gemini/settings.json", json.dumps({"mcp": {"excluded": ["db"]}}))
    found = run()
    assert found.return_value == 0
    assert found.stdout.splitlines()[-2:] == [f"gemini, plugin docs: {extension}", "  db  off"]


def test_broken_settings_that_hide_plugins_are_reported_once(home: Path) -> None:
    put(home / ".gemini/extensions/docs/gemini-extension.json", servers_json(db={"command": "x"}))
    put(home / ".gemini/settings.json", "{")
    found = run()
    assert found.return_value == 1
    assert len(found.stderr.splitlines()) == 1


def test_a_file_with_servers_without_end_is_not_read(home: Path) -> None:
    put(home / ".cursor/mcp.json", servers_json(**{str(n): WRAPPED for n in range(1001)}))
    [file] = json.loads(run("--json").stdout)["files"]
    assert file["problem"] == "1001 servers"


LIST = [
    {
        "name": "Local",
        "namespace": "l",
        "command": "true",
        "env": {"API_KEY": "s3cr3t-s3cr3t"},
        "inherits": ["API_TOKEN"],
        "supportedTransports": ["stdio"],
    }
]
HUB = """
[mcp_servers.one]
command = "/usr/bin/true"
inherits_any = ["A"]
[mcp_servers.two]
command = "/usr/bin/true"
inherits = ["LANG"]
[mcp_servers.three]
command = "/usr/bin/true"
[mcp_servers.tools.members.one]
[mcp_servers.tools.members.two]
[mcp_servers.tools.members.elsewhere]
"""


@pytest.mark.parametrize(
    ("arguments", "names"),
    [((), {"three", "tools"}), (("--hub", "tools"), {"tools"})],
)
def test_a_hub_has_one_entry(home: Path, arguments: tuple[str, ...], names: set[str]) -> None:
    file = home / "config.toml"
    file.write_text(HUB)
    done = converted(str(file), "--client", "codex", *arguments)
    assert "note: elsewhere: not in this file" in done.stderr
    found = tomli.loads(done.stdout)
    assert found["mcp_servers"].keys() == names
    assert found["mcp_servers"]["tools"]["args"] == ["tools"]
    assert found["mcp_servers"]["tools"]["env_vars"] == ["A", "LANG"]


def test_a_hub_with_all_members_needs_no_note(home: Path) -> None:
    file = home / "config.toml"
    file.write_text(HUB.replace("[mcp_servers.tools.members.elsewhere]", ""))
    assert converted(str(file), "--client", "codex").stderr == ""


def test_a_list_of_proxied_servers_as_configuration(home: Path) -> None:
    file = home / "proxied-mcp-servers.json"
    file.write_text(json.dumps(LIST))
    done = converted(str(file), "--hub", "all")
    servers = parse([SourceFile("printed", done.stdout.encode())]).servers
    assert servers.keys() == {"local", "all"}
    assert "sudo mcpwrap secret set local API_KEY" in done.stderr
    assert "s3cr3t" not in done.output
    entry = json.loads(converted(str(file), "--hub", "all", "--client", "claude-code").stdout)
    assert entry["mcpServers"] == {"all": {"command": STUB, "args": ["all"]}}


def test_a_list_that_cannot_be_converted(home: Path) -> None:
    file = home / "proxied-mcp-servers.json"
    file.write_text(json.dumps([LIST[0] | {"command": "nothere"}]))
    done = converted(str(file))
    assert (done.return_value, done.stdout) == (2, "")
    assert "nothere" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--hub", "one", "--client", "zed"), "E-CONVERT-NO-HUB"),
        ((), "E-CONVERT-NO-CLIENT"),
    ],
)
def test_what_cannot_be_printed_is_an_error(
    home: Path, arguments: tuple[str, ...], code: str
) -> None:
    file = home / "config.toml"
    file.write_text(HUB)
    caught = converted(str(file), *arguments).exception
    assert isinstance(caught, UsageError)
    assert caught.code == code
