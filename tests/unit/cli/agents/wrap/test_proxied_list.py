"""`mcpwrap wrap --file` with a list of proxied servers: one hub, which root is asked for."""

import json
from pathlib import Path

import pytest
import tomli
from click.testing import Result

from mcpwrap.config.model import ConfigError, Hub, HubMember, Local, SecretRef, Server
from mcpwrap.errors import UsageError
from tests.unit.cli.agents.wrap.wrapping import RAW, put, run
from tests.unit.cli.root import Root

LIST: list[dict[str, object]] = [
    {
        "name": "My Server!",
        "namespace": "myserver",
        "command": "sh",
        "args": ["-c", "true"],
        "env": {"DEBUG": "true", "API_URL": "", "API_KEY": "s3cr3t-s3cr3t"},
        "inherits": ["API_URL", "API_TOKEN", "LANG"],
        "supportedTransports": ["stdio"],
        "instructions": "First this.",
    },
    {
        "name": "two",
        "namespace": "",
        "command": "sh",
        "args": ["-c", "exit"],
        "supportedTransports": ["http", "stdio"],
    },
]
MEMBERS = (
    HubMember(
        name="my-server",
        namespace="myserver",
        instructions="First this.",
        transports=("stdio",),
    ),
    HubMember(name="two", namespace=""),
)


def listed(home: Path, *entries: object) -> str:
    file = home / "proxied-mcp-servers.json"
    file.write_text(json.dumps(entries or LIST))
    return str(file)


def wrapped(home: Path, *options: str, entries: tuple[object, ...] = ()) -> Result:
    return run("--file", listed(home, *entries), *options, API_TOKEN="t0p-t0p-t0p")


def test_a_list_becomes_servers_and_one_hub(root: Root, home: Path) -> None:
    done = wrapped(home, "--yes")
    assert (done.return_value, done.exception) == (0, None)
    assert set(root.servers) == {"my-server", "two", "tools"}
    assert root.servers["tools"].runs == Hub(members=MEMBERS)
    runs = root.servers["my-server"].runs
    assert isinstance(runs, Local)
    assert runs.env == {"DEBUG": ("true",), "API_URL": (), "API_KEY": (SecretRef("API_KEY"),)}
    # A variable of a kind in `inherits`, any other shown to root as chosen by the agent.
    assert (runs.inherits, runs.inherits_any) == (("LANG",), ("API_TOKEN",))
    assert "your agent chooses the value of API_TOKEN at each start" in done.output
    assert "'My Server!' becomes the server my-server" in done.output
    assert "myserver__TOOL" in done.output
    assert {server.agents for server in root.servers.values()} == {("alice",)}


def test_the_persons_own_values_are_not_sealed(root: Root, home: Path) -> None:
    done = wrapped(home, "--yes")
    assert root.secrets() == {"my-server": {"API_KEY": "s3cr3t-s3cr3t"}}
    for secret in ("t0p-t0p", "s3cr3t"):
        assert secret not in done.output
        assert secret not in (root.folder / "proposal").read_text()


def test_a_second_run_has_nothing_to_do(root: Root, home: Path) -> None:
    wrapped(home, "--yes")
    (root.folder / "asked").unlink()
    again = wrapped(home, "--yes")
    assert (again.return_value, (root.folder / "asked").exists()) == (0, False)
    assert "mcpwrap-connect tools" in again.output


def test_the_list_stays_as_it_is(root: Root, home: Path) -> None:
    wrapped(home, "--yes")
    assert json.loads(Path(listed(home)).read_text()) == LIST
    assert not list((home / ".local/state/mcpwrap").glob("backup-*"))


@pytest.mark.parametrize(("option", "name"), [((), "tools-2"), (("--hub", "all"), "all")])
def test_the_name_of_the_hub(root: Root, home: Path, option: tuple[str, ...], name: str) -> None:
    root.servers["tools"] = Server(name="tools", runs=Local(command="/usr/bin/true"))
    wrapped(home, "--yes", *option)
    assert root.servers[name].runs == Hub(members=MEMBERS)


def test_a_dry_run_asks_nobody(root: Root, home: Path) -> None:
    done = wrapped(home, "--dry-run")
    assert done.return_value == 0
    assert "[mcp_servers.tools.members.two]" in done.output
    assert not (home / ".local").exists()


def test_root_declines(root: Root, home: Path) -> None:
    root.agrees(status=1)
    (root.folder / "agrees").unlink()
    done = wrapped(home, "--yes")
    assert (done.return_value, root.servers) == (1, {})


def test_one_entry_that_cannot_run_stops_all(root: Root, home: Path) -> None:
    odd = {**LIST[1], "name": "odd", "namespace": "odd", "command": "nothere"}
    done = wrapped(home, "--yes", entries=(*LIST, odd))
    assert done.return_value == 1
    assert "left as it is: odd" in done.output
    assert "nothing was changed" in done.output
    assert not (root.folder / "asked").exists()


def test_one_server_twice(root: Root, home: Path) -> None:
    done = wrapped(home, "--yes", entries=(LIST[1], {**LIST[1], "name": "x", "namespace": "x"}))
    assert "it is the same server as another entry: two [E-PROXIED-TWICE]" in done.output


@pytest.mark.parametrize(
    ("entries", "options", "code"),
    [
        ((LIST[0] | {"namespace": "context/x"},), (), "E-HUB-NAMESPACE"),
        ((LIST[0] | {"namespace": "a__b"},), (), "E-HUB-NAMESPACE"),
        ((LIST[0] | {"namespace": "n" * 41},), (), "E-HUB-NAMESPACE"),
        ((LIST[0] | {"namespace": "n" * 40},), ("--hub", "tools-x"), "E-HUB-NAMESPACE"),
        ((LIST[0] | {"namespace": ""}, LIST[1]), (), "E-HUB-NAMESPACE-TWICE"),
        ((LIST[0] | {"cwd": "/"},), (), "E-PROXIED-ENTRY"),
        ((LIST[0],), ("--hub", "my_tools"), "E-HUB-NAME"),
        ((LIST[0],), ("--hub", "a]\nx"), "E-HUB-NAME"),
        ((LIST[0],), ("--hub", "my-server"), "E-HUB-NAME-TAKEN"),
        ((LIST[0],), ("--file", "/etc/passwd"), "E-WRAP-LIST-ALONE"),
        ((LIST[0],), ("codex",), "E-WRAP-LIST-ALONE"),
    ],
)
def test_a_refusal_changes_nothing(
    root: Root,
    home: Path,
    entries: tuple[object, ...],
    options: tuple[str, ...],
    code: str,
) -> None:
    done = wrapped(home, "--yes", *options, entries=entries)
    assert isinstance(done.exception, UsageError)
    assert isinstance(done.exception, ConfigError) or done.exception.code == code
    assert code in "\n".join(done.exception.lines())
    assert not (root.folder / "asked").exists()


def test_a_namespace_is_refused_where_it_is_written(root: Root, home: Path) -> None:
    done = wrapped(home, "--yes", entries=(LIST[0] | {"namespace": "context/x"},))
    assert isinstance(done.exception, ConfigError)
    [problem] = done.exception.problems
    assert problem.file == str(home / "proxied-mcp-servers.json")


def test_the_longest_namespace_is_taken(root: Root, home: Path) -> None:
    done = wrapped(home, "--yes", entries=(LIST[0] | {"namespace": "n" * 40},))
    assert done.return_value == 0


def test_an_agents_file_beside_a_list_is_no_list(root: Root, home: Path) -> None:
    file = put(home / ".cursor/mcp.json", local=RAW)
    assert run("--file", str(file), "--yes").return_value == 0
    assert set(root.servers) == {"local"}


def test_json_has_the_servers_and_the_hub(root: Root, home: Path) -> None:
    found = json.loads(wrapped(home, "--yes", "--json").stdout)
    assert [new["name"] for new in found["new"]] == ["my-server", "two", "tools"]
    assert tomli.loads(found["new"][2]["definition"])["mcp_servers"]["tools"]["members"]
    [file] = found["files"]
    assert [(row["name"], row["server"], row["state"]) for row in file["servers"]] == [
        ("My Server!", "my-server", "wrapped"),
        ("two", "two", "wrapped"),
    ]
    assert (found["done"], found["proposal"], file["is_written"]) == (True, None, False)
