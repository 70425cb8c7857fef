"""Conversion of entries into arguments of `mcpwrap run`: options, notes, and refusals."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from mcpwrap.config.agent_files.known_agents import BY_ID
from mcpwrap.config.agent_files.parsed_file import ListedServer, open_file, servers
from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport
from mcpwrap.config.migration.draft import EntryContext, MigrationError, PathInfo, ResolvedCommand
from mcpwrap.config.migration.unprivileged import (
    RunDraft,
    draft_program,
    draft_remote,
    launcher_of,
)

HOME = "/home/alice"
DATA, SHOP = f"{HOME}/data", f"{HOME}/shop"
AROUND = EntryContext(
    account="alice",
    home=HOME,
    variables={"HOME": HOME, "DATA": DATA, "API_KEY": "wJalrXUtnFEMI7MDENGbPxRfiCY"},
    program=ResolvedCommand("npx"),
    places={
        HOME: PathInfo(is_folder=True),
        DATA: PathInfo(is_folder=True),
        f"{DATA}/sub": PathInfo(is_folder=True),
        f"{DATA}/x.db": PathInfo(is_folder=False, top=DATA),
        f"{HOME}/.ssh": PathInfo(is_folder=True),
        f"{HOME}/.ssh/id": PathInfo(is_folder=False, top=f"{HOME}/.ssh"),
        f"{HOME}/.config/autostart": PathInfo(is_folder=True),
        f"{HOME}/link": PathInfo(is_folder=True, leads_to="/data/alice"),
        f"{HOME}/one.py": PathInfo(is_folder=False, is_code=True, top=HOME),
        f"{SHOP}/src/server.js": PathInfo(is_folder=False, is_code=True, top=SHOP),
        f"{HOME}/x.db": PathInfo(is_folder=False, top=HOME),
        f"{HOME}/key.json": PathInfo(is_folder=False, top=HOME),
        "/srv/team": PathInfo(is_folder=True),
    },
)


def listed(**entry: object) -> ListedServer:
    return listed_of("cursor", entry)


def listed_of(agent: str, entry: Mapping[str, object]) -> ListedServer:
    content = json.dumps({"mcpServers": {"one": entry}}).encode()
    return servers(open_file("f", "json", content), [("mcpServers",)], BY_ID[agent].words)[0]


def drafted(one: ListedServer, context: EntryContext = AROUND) -> RunDraft:
    assert isinstance(one.launch, StdioTransport)
    return draft_program(one, one.launch, context)


def options(*args: str, command: str = "node", **entry: object) -> str:
    return " ".join(drafted(listed(command=command, args=list(args), **entry)).options)


@pytest.mark.parametrize(
    ("command", "args", "is_given"),
    [
        ("npx", ["-y", "x"], True),
        ("/usr/bin/npx", ["x"], True),
        *((name, ["x"], True) for name in ("npm", "pnpm", "pnpx", "bunx", "yarn", "bun")),
        *((name, ["run", "x"], True) for name in ("uv", "uvx", "pipx")),
        ("env", ["A=b", "npx", "x"], True),
        ("/usr/bin/env", ["-i", "A=b", "uvx", "x"], True),
        *((name, ["x"], False) for name in ("node", "python3", "/opt/x/github-mcp-server", "sh")),
        ("env", ["A=b", "node", "npx"], False),
        ("env", [], False),
    ],
)
def test_only_what_downloads_its_code_has_the_network(
    command: str, args: list[str], *, is_given: bool
) -> None:
    found = drafted(listed(command=command, args=args))
    assert ("--network" in found.options) == is_given
    assert found.command == (command, *args)
    note = "it has your network access, as " if is_given else "it has no network; to allow that, "
    assert found.notes[0].startswith(note)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([DATA], f"--write {DATA}"),
        (["~/data"], f"--write {DATA}"),
        (["${HOME}/data"], f"--write {DATA}"),
        ([f"--root={DATA}"], f"--write {DATA}"),
        (["--root", DATA], f"--write {DATA}"),
        ([DATA, f"{DATA}/sub"], f"--write {DATA}"),
        ([f"{DATA}/x.db"], f"--write {DATA}"),  # its journal is beside it
        (["/srv/team"], "--write /srv/team"),  # of another account
        ([f"{HOME}/none"], ""),
        ([f"{SHOP}/src/server.js"], f"--read {SHOP}"),
        (["~/one.py"], f"--read {HOME}/one.py"),  # not the whole home
        (["--api-token", f"{HOME}/key.json"], f"--write {HOME}/key.json"),
        (["data"], ""),
    ],
)
def test_paths_that_are_named_are_given(args: list[str], expected: str) -> None:
    assert options(*args) == expected


def test_a_file_that_a_variable_of_a_secret_names_is_only_read() -> None:
    assert options(env={"API_KEY": f"{HOME}/key.json"}) == (
        f"--inherit API_KEY --read {HOME}/key.json"
    )
    assert options(env={"NOTES": DATA}) == f"--inherit NOTES --write {DATA}"


@pytest.mark.parametrize("own", [f"{DATA}/venv/bin/mcpwrap", DATA, f"{HOME}/data"])
def test_no_server_may_write_to_the_mcpwrap_that_confines_it(own: str) -> None:
    one = listed(command="node", args=[DATA])
    with pytest.raises(MigrationError, match=r"change the mcpwrap .*\[E-WRAP-RUN-OWN-CODE\]"):
        drafted(one, replace(AROUND, own_code=("/usr/bin/mcpwrap", own)))
    assert drafted(one, replace(AROUND, own_code=(f"{HOME}/data2/mcpwrap",))).options


def test_its_folder_is_not_given_to_write() -> None:
    """`run` lets it read the folder that it is started in."""
    around = replace(AROUND, base=DATA)
    one = listed(command="node", args=["x.js"], cwd=DATA)
    assert drafted(one, around).options == ()
    assert drafted(listed(command="node", args=["./sub"]), around).options == (
        "--write", f"{DATA}/sub",
    )  # fmt: skip


def test_folders_of_environments_are_given_to_read() -> None:
    around = replace(AROUND, program=ResolvedCommand("uv", (f"{HOME}/.local/share/uv/python",)))
    one = listed(command="uv", args=["run", "x"])
    given = ("--network", "--read", f"{HOME}/.local/share/uv/python")
    assert drafted(one, around).options == given


@pytest.mark.parametrize(
    ("agent", "entry", "expected"),
    [
        ("cursor", {"env": {"TOKEN": "s", "LEVEL": "i"}}, ["TOKEN", "LEVEL"]),
        ("cursor", {"env": {"PATH": "/x/bin:/usr/bin", "A": "b"}}, ["A"]),
        ("codex", {"env": {"A": "b"}, "env_vars": ["OWN", "A"]}, ["A", "OWN"]),
        ("goose", {"cmd": "node", "envs": {"A": "b"}, "env_keys": ["K"]}, ["K", "A"]),
        ("cursor", {"envFile": "/x/.env", "env": {"A": "b"}}, ["OF_FILE", "A"]),
        ("vscode", {"sandboxEnabled": True, "env": {"A": "b"}}, ["A"]),
    ],
)
def test_the_variables_of_an_entry_are_passed_on(
    agent: str, entry: dict[str, object], expected: list[str]
) -> None:
    around = replace(AROUND, env_file={"OF_FILE": "x"} if "envFile" in entry else None)
    command = {} if "cmd" in entry else {"command": "node"}
    found = drafted(listed_of(agent, {**command, **entry}), around)
    assert list(found.options[1::2]) == expected
    assert set(found.options[::2]) == {"--inherit"}
    assert found.env == {}  # they stay where they are


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("PYTHONPATH", "PYTHONPATH decides which code runs or where data goes"),
        ("LD_PRELOAD", "LD_PRELOAD decides"),
        ("NODE_OPTIONS", "NODE_OPTIONS decides"),
        ("HOME", "HOME decides"),
        ("MCPWRAP_X", "MCPWRAP_X decides"),
        (
            "XDG_CONFIG_HOME",
            "`mcpwrap run` itself finds its policy or its state by XDG_CONFIG_HOME",
        ),
        ("XDG_STATE_HOME", "`mcpwrap run` itself finds"),
        ("A B", "'A B' is not"),
    ],
)
def test_a_variable_that_run_refuses_is_named_with_what_to_do(name: str, why: str) -> None:
    with pytest.raises(MigrationError) as refused:
        drafted(listed(command="node", env={name: "x"}))
    assert why in str(refused.value)
    assert f"`{name}=VALUE` before the program in its arguments [E-WRAP-RUN-VARIABLE]" in str(
        refused.value
    )
    by_env = listed(command="env", args=[f"{name}=x", "node"])  # the twin
    assert drafted(by_env).options == ()


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"command": "docker", "args": ["run"]}, "a container by a daemon, .* E-MIGRATE-CONTAINER"),
        ({"command": "env", "args": ["A=b", "podman"]}, "a container by a daemon"),
        ({"command": "sudo", "args": ["x"]}, "sudo needs privileges, .* E-MIGRATE-PRIVILEGED"),
        ({"command": "/snap/bin/x"}, "x needs privileges"),
        ({"command": "x", "auth": {}}, "its key `auth` changes how .* E-MIGRATE-KEY"),
        ({"command": "x", "envFile": "/no"}, "its `envFile` cannot .* E-MIGRATE-ENV-FILE"),
        ({"command": "x", "args": [HOME]}, "the whole of /home/alice: .* E-MIGRATE-HOME"),
        ({"command": "x", "args": ["~"]}, "the whole of /home/alice: .* E-MIGRATE-HOME"),
        ({"command": "x", "args": ["~/x.db"]}, "such as '/home/alice/x/x.db', and"),
        ({"command": "x", "args": ["~/.ssh"]}, "keys or logins .* E-MIGRATE-SENSITIVE-FOLDER"),
        ({"command": "x", "args": ["~/.ssh/id"]}, "by hand, with `--read` or `--write`"),
        ({"command": "x", "args": ["~/.config/autostart"]}, "are run under your account"),
        ({"command": "x", "args": ["~/link"]}, "is behind a link: .* E-MIGRATE-LINK"),
    ],
)
def test_what_is_refused(entry: dict[str, object], why: str) -> None:
    pattern = why.replace(" E-", r" \[E-")
    with pytest.raises(MigrationError, match=pattern):
        drafted(listed(**entry))


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(MigrationError, match="'x' is not found in PATH; install it, or write"):
        drafted(listed(command="x"), replace(AROUND, program=None))


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        ({"args": [DATA]}, f"it may write {DATA}"),
        ({"args": [f"{SHOP}/src/server.js"]}, f"it may read {SHOP}"),
        (
            {"args": ["--url", "https://api.x.example/"]},
            "it names api.x.example, and has no network; to",
        ),
        (
            {"env": {"U": "http://h.example:8080/x"}},
            "it names h.example:8080, and has no network; to",
        ),
        ({"args": ["${workspaceFolder}/d"]}, "its argument 1 is not known here: if it is a path,"),
        ({"args": ["x", "${API_KEY}"]}, "its argument 2 is not known here"),
        ({"command": "sh", "args": ["-c", "npx x"]}, "it is a line for a shell"),
    ],
)
def test_what_a_person_is_told(entry: dict[str, object], note: str) -> None:
    found = drafted(listed(**{"command": "node", **entry}))
    assert any(one.startswith(note) for one in found.notes), found.notes


def test_references_are_left_to_the_agent() -> None:
    found = drafted(listed(command="${HOME}/x", args=["${API_KEY}", "${HOME}/data", "~/data"]))
    assert found.command == ("${HOME}/x", "${API_KEY}", "${HOME}/data", DATA)
    assert found.options == ("--write", DATA)
    assert AROUND.variables["API_KEY"] not in repr(found)


def test_the_command_of_env() -> None:
    assert launcher_of(StdioTransport("/usr/bin/env", ("-S", "A=b", "", "npx", "x"))) == "npx"
    assert launcher_of(StdioTransport("npx", ("env",))) == "npx"


URL = "https://x.example/mcp"


@pytest.mark.parametrize(
    ("agent", "entry", "words", "env", "inherits"),
    [
        ("cursor", {}, "", {}, ()),
        (
            "cursor",
            {"headers": {"Authorization": "Bearer s3cr3t", "X-Team": "a"}},
            "--bearer-from BEARER_TOKEN --header-from X-Team=HEADER_X_TEAM",
            {"BEARER_TOKEN": "s3cr3t", "HEADER_X_TEAM": "a"},
            (),
        ),
        (
            "cursor",
            {"headers": {"authorization": "Basic s3cr3t"}},
            "--header-from authorization=HEADER_AUTHORIZATION",
            {"HEADER_AUTHORIZATION": "Basic s3cr3t"},
            (),
        ),
        (  # no token has a space
            "cursor",
            {"headers": {"Authorization": "Bearer two words"}},
            "--header-from Authorization=HEADER_AUTHORIZATION",
            {"HEADER_AUTHORIZATION": "Bearer two words"},
            (),
        ),
        (  # the agent goes on to fill it in
            "cursor",
            {"headers": {"Authorization": "Bearer ${API_KEY}"}},
            "--bearer-from BEARER_TOKEN",
            {"BEARER_TOKEN": "${API_KEY}"},
            (),
        ),
        (
            "codex",
            {"bearer_token_env_var": "TOK", "env_http_headers": {"X-A": "VAR"}},
            "--header-from X-A=VAR --bearer-from TOK",
            {},
            ("VAR", "TOK"),
        ),
        (  # names that differ, and are one as a variable
            "cursor",
            {"headers": {"A-B": "a", "A_B": "b"}},
            "--header-from A-B=HEADER_A_B --header-from A_B=HEADER_A_B_2",
            {"HEADER_A_B": "a", "HEADER_A_B_2": "b"},
            (),
        ),
        (  # the person has a variable of that name
            "codex",
            {"http_headers": {"X-Key": "a"}, "env_http_headers": {"X-B": "HEADER_X_KEY"}},
            "--header-from X-Key=HEADER_X_KEY_2 --header-from X-B=HEADER_X_KEY",
            {"HEADER_X_KEY_2": "a"},
            ("HEADER_X_KEY",),
        ),
    ],
)
def test_a_url_becomes_a_program_that_gets_its_headers_as_variables(
    agent: str,
    entry: dict[str, object],
    words: str,
    env: dict[str, str],
    inherits: tuple[str, ...],
) -> None:
    one = listed_of(agent, {"url": URL, **entry})
    assert isinstance(one.launch, HttpTransport)
    found = draft_remote(one, one.launch, AROUND)
    assert found.options == ("--url", URL, *words.split())
    assert (found.command, found.env, found.inherits) == ((), env, inherits)


@pytest.mark.parametrize(
    ("entry", "notes"),
    [
        ({}, "it gets no token; if it needs a login, restore its entry: .*"),
        ({"http_headers": {"X-Team": "a"}}, "its headers stay in the file, .*"),
        ({"env_http_headers": {"X-Team": "TEAM"}}, ""),
        ({"bearer_token_env_var": "TOK"}, ""),
    ],
)
def test_what_a_person_is_told_of_a_url(entry: dict[str, object], notes: str) -> None:
    one = listed_of("codex", {"url": URL, **entry})
    assert isinstance(one.launch, HttpTransport)
    assert re.fullmatch(notes, "\n".join(draft_remote(one, one.launch, AROUND).notes))


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (
            {"oauth": {"clientId": "x"}},
            r"it needs a login, and without root .* \[E-WRAP-RUN-LOGIN\]",
        ),
        ({"url": f"{URL}?token=s3cr3ts3cr3t"}, "its URL holds a secret"),
        ({"url": "https://${NONE}/"}, "its URL has a reference"),
        ({"url": "http://x.example/"}, "mcpwrap does not accept its URL"),
        ({"headersHelper": "x"}, "its key `headersHelper` changes"),
    ],
)
def test_a_url_that_is_refused(entry: dict[str, object], why: str) -> None:
    one = listed(**{"url": URL, **entry})
    assert isinstance(one.launch, HttpTransport)
    with pytest.raises(MigrationError) as refused:
        draft_remote(one, one.launch, AROUND)
    assert re.search(why, str(refused.value))
