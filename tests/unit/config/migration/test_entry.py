"""Conversion of one entry, of any kind, into a proposed server."""

import json
from dataclasses import replace

import pytest

from mcpwrap.config.agent_files.known_agents import BY_ID
from mcpwrap.config.agent_files.parsed_file import ListedServer, open_file, servers
from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport
from mcpwrap.config.migration.draft import EntryContext, MigrationError, ResolvedCommand
from mcpwrap.config.migration.entry import draft, launch_of, secrets_in
from mcpwrap.config.model import Local, SecretRef

AROUND = EntryContext(
    account="alice",
    home="/home/alice",
    variables={"SSH_AUTH_SOCK": "/run/x"},
    program=ResolvedCommand("/usr/bin/npx"),
)
MCPWRAP = "/home/alice/venv/bin/mcpwrap"


def listed(entry: object, agent: str = "claude-code") -> ListedServer:
    content = json.dumps({"mcpServers": {"one": entry}}).encode()
    opened = open_file("f.json", "json", content)
    return servers(opened, [("mcpServers",)], BY_ID[agent].words)[0]


def of_run(*args: str) -> dict[str, object]:
    return {"command": MCPWRAP, "args": ["run", *args]}


def test_a_bridge_is_what_it_leads_to() -> None:
    entry = listed({"command": "npx", "args": ["mcp-remote", "https://x.example/mcp"]})
    launch = launch_of(entry, AROUND)
    assert launch == HttpTransport("https://x.example/mcp")
    assert draft(entry, launch, AROUND).server.speaks_http()


@pytest.mark.parametrize(
    ("words", "env", "expected"),
    [
        (
            "--name a --network --inherit A --inherit B -- npx -y x",
            {"A": "1"},
            StdioTransport("npx", ("-y", "x"), {"A": "1"}, inherits=("B",)),
        ),
        ("npx", {}, StdioTransport("npx")),
        ("--url https://x.example/", {}, HttpTransport("https://x.example/")),
        (
            "--url https://x.example/ --bearer-from T --header-from X-A=B",
            {"T": "s3cr3t"},
            HttpTransport("https://x.example/", {"X-A": "${B}", "Authorization": "Bearer s3cr3t"}),
        ),
    ],
)
def test_a_line_of_run_is_what_it_starts(
    words: str, env: dict[str, str], expected: StdioTransport | HttpTransport
) -> None:
    entry = listed({"command": MCPWRAP, "args": ["run", *words.split()], "env": env})
    around = replace(AROUND, variables={"B": "b"})
    assert launch_of(entry, around) == expected


def test_a_line_of_run_without_a_command_is_refused() -> None:
    with pytest.raises(MigrationError, match=r"has no command; .* \[E-MIGRATE-RUN-LINE\]"):
        launch_of(listed({"command": MCPWRAP, "args": ["run", "--network"]}), AROUND)


def test_a_bridge_has_its_header_from_its_own_variables() -> None:
    args = ["mcp-remote", "https://x.example/mcp", "--header", "Authorization: ${AUTH}"]
    entry = listed({"command": "npx", "args": args, "env": {"AUTH": "Bearer s3cr3t"}})
    found = draft(entry, launch_of(entry, AROUND), AROUND)
    assert found.value_by_key == {"TOKEN": "s3cr3t"}


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "npx", "args": ["-y", "x", "${AWS_SECRET_ACCESS_KEY}"]},
        {"command": "npx", "cwd": "/tmp/${AWS_SECRET_ACCESS_KEY}"},
        {"command": "${AWS_SECRET_ACCESS_KEY}"},
        {"url": "https://x.example/${AWS_SECRET_ACCESS_KEY}/mcp"},
        {"command": "npx", "args": ["mcp-remote", "https://x.example/${AWS_SECRET_ACCESS_KEY}"]},
    ],
)
def test_no_secret_of_a_person_becomes_readable_by_all(entry: dict[str, object]) -> None:
    around = replace(AROUND, variables={"AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI7MDENGbPxRfiCY"})
    found = listed(entry)
    with pytest.raises(MigrationError, match="your variable AWS_SECRET_ACCESS_KEY, which can be"):
        draft(found, launch_of(found, around), around)


def test_variables_of_which_there_is_the_name_alone() -> None:
    names = ["SSH_AUTH_SOCK", "NONE", "LANG", "TZ", "PATH", "API_KEY", "ODD", "NO_TOKEN", "A"]
    entry = listed({"command": "npx", "env_vars": names, "env": {"A": "b"}}, "codex")
    around = replace(
        AROUND,
        variables={
            **AROUND.variables,
            "TZ": ":/etc/localtime",  # the value is not of the kind
            "PATH": "/usr/bin",
            "API_KEY": "k3y",
            "ODD": "wJalrXUtnFEMI7MDENGbPxRfiCY",
        },
    )
    launch = launch_of(entry, around)
    assert isinstance(launch, StdioTransport)
    found = draft(entry, launch, around)
    assert isinstance(found.server.runs, Local)
    assert found.server.runs.env == {
        "PATH": ("/usr/bin",),  # no agent may choose it: it keeps its present value
        "API_KEY": (SecretRef("API_KEY"),),
        "ODD": (SecretRef("ODD"),),
        "NO_TOKEN": (SecretRef("NO_TOKEN"),),
        "A": ("b",),
    }
    assert found.missing == ("NO_TOKEN",)
    assert found.value_by_key == {"API_KEY": "k3y", "ODD": "wJalrXUtnFEMI7MDENGbPxRfiCY"}
    assert found.server.runs.inherits == ("LANG",)
    assert found.server.runs.inherits_any == ("SSH_AUTH_SOCK", "NONE", "TZ")
    noted = [note for note in found.notes if "at each start" in note]
    assert noted == [
        f"your agent chooses the value of {name} at each start"
        for name in ("SSH_AUTH_SOCK", "NONE", "TZ")
    ]


def test_variables_that_an_agent_keeps_are_secrets() -> None:
    entry = {"cmd": "npx", "type": "stdio", "env_keys": ["PROJECT"], "name": "one"}
    found = listed(entry, "goose")
    drafted = draft(found, launch_of(found, AROUND), AROUND)
    assert isinstance(drafted.server.runs, Local)
    assert drafted.server.runs.env == {"PROJECT": (SecretRef("PROJECT"),)}
    assert (drafted.missing, drafted.server.runs.inherits_any) == (("PROJECT",), ())


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"command": "npx", "envFile": ".env"}, "its `envFile` cannot be parsed"),
        ({"command": "npx", "env_vars": [{"name": "A"}]}, "`env_vars` changes how it is started"),
        ({"type": "odd", "command": "npx"}, "`type` is 'odd'"),
        ({"command": "npx", "env": {"ODD NAME": "x"}}, "is not a variable name"),
        ({"command": "npx", "args": ["a\0b"]}, "a NUL"),
        ({"url": "https://x.example/", "headers": {"Host": "x"}}, "is set by mcpwrap itself"),
        ({"url": "https://x.example/", "headers": {"X Y": "a"}}, "is not a valid header name"),
    ],
)
def test_what_is_refused(entry: object, why: str) -> None:
    one = listed(entry, "codex" if "env_vars" in str(entry) else "claude-code")
    with pytest.raises(MigrationError) as refusal:
        draft(one, launch_of(one, AROUND), AROUND)
    assert why in str(refusal.value)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "x", "args": ["--token", "a"], "env": {"KEY": "b", "L": "info"}}, ["a", "b"]),
        ({"url": "https://x.example/?key=c"}, ["https://x.example/?key=c"]),
        ({"url": "https://x.example/", "headers": {"Authorization": "Bearer d"}}, ["d"]),
        ({"url": "https://x.example/", "headers": {"Authorization": "${X}"}}, []),
        ({"command": "x", "env": {"A": "${X:-s3cr3t}", "B": "${B:-info}"}}, ["${X:-s3cr3t}"]),
        ({"command": "x", "env": {"A": "${X} s3cr3t"}}, ["${X} s3cr3t"]),
        ({"url": "https://x.example/", "auth": {"CLIENT_SECRET": "e", "x": ["f"]}}, ["e"]),
        ({"odd": 1}, []),
        # names of variables are shown
        (of_run("--bearer-from", "BEARER_TOKEN"), []),
        (of_run("--inherit", "API_KEY", "--", "npx"), []),
        (of_run("--header-from", "X-Api-Key=HEADER_X_API_KEY_2"), []),
        # and nothing else there
        (of_run("--bearer-from", "a-b"), ["a-b"]),
        (of_run("--bearer-from", "x9f86d081884c7d"), ["x9f86d081884c7d"]),
        (of_run("--bearer-from", "ghp_abcdefghijklmnop"), ["ghp_abcdefghijklmnop"]),
        (of_run("--header-from", "X-Api-Key=a.b"), ["X-Api-Key=a.b"]),
        (of_run("--header-from", "X-Api-Key=x9f86d081884c7d"), ["X-Api-Key=x9f86d081884c7d"]),
        (of_run("--bearer-from=BEARER"), ["--bearer-from=BEARER"]),
        (of_run("--", "npx", "--bearer-from", "abc"), ["abc"]),
        (of_run("npx", "--bearer-from", "abc"), ["abc"]),
        (of_run("--bearer-from", "A", "--", "npx", "--token", "A"), ["A"]),
        ({"command": "npx", "args": ["run", "--bearer-from", "abc"]}, ["abc"]),
        ({"command": "mcpwrap", "args": ["--bearer-from", "abc"]}, ["abc"]),
    ],
)
def test_what_of_an_entry_is_not_shown(entry: object, expected: list[str]) -> None:
    assert secrets_in(listed(entry)) == expected
