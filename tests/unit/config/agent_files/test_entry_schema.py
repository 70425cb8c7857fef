"""Parsing of an entry, with each agent's keys; and entries that are not a server to run."""

import pytest

from mcpwrap.config.agent_files.entry_schema import FROM_WINDOWS, STUB, ListenerUrl, Stub, Target
from mcpwrap.config.agent_files.known_agents import BY_ID
from mcpwrap.config.agent_files.syntax.document import Opaque
from mcpwrap.config.agent_files.transport import (
    HttpTransport,
    StdioTransport,
    Transport,
    UnknownTransport,
)

URL = "http://127.78.0.1:52100/"
GOOSE = {"name": "git", "type": "stdio", "cmd": STUB, "args": ["git"], "enabled": True}


@pytest.mark.parametrize(
    ("agent", "value", "launch"),
    [
        ("kiro", {"command": "x"}, StdioTransport("x")),
        ("kiro", {"command": "x", "args": None, "env": None, "cwd": None}, StdioTransport("x")),
        (
            "kiro",
            {"command": "x", "args": ["a"], "cwd": "/y"},
            StdioTransport("x", ("a",), {}, "/y"),
        ),
        (
            "goose",
            {"cmd": "x", "envs": {"A": 1}, "type": "stdio"},
            StdioTransport("x", (), {"A": "1"}),
        ),
        ("opencode", {"command": ["x", "y"], "type": "local"}, StdioTransport("x", ("y",))),
        ("cursor", {"command": "x", "envFile": "e"}, StdioTransport("x", (), {}, "", ("envFile",))),
        ("codex", {"command": "x", "env_vars": ["A"]}, StdioTransport("x", inherits=("A",))),
        ("codex", {"command": "x", "env_vars": [{}]}, StdioTransport("x", further=("env_vars",))),
        ("codex", {"url": "u", "env_vars": ["A"]}, HttpTransport("u", {}, ("env_vars",))),
        ("kiro", {"url": "u", "headers": {"A": "b"}}, HttpTransport("u", {"A": "b"})),
        ("kiro", {"url": "u", "type": "sse", "oauth": {}}, HttpTransport("u", {}, ("oauth",))),
        ("qwen", {"httpUrl": "u"}, HttpTransport("u")),
        (
            "codex",
            {"url": "u", "http_headers": {"A": "b"}, "bearer_token_env_var": "T"},
            HttpTransport("u", {"A": "b"}, ("bearer_token_env_var",)),
        ),
        ("kiro", 5, UnknownTransport("the entry is a number, not a table")),
        ("kiro", None, UnknownTransport("the entry is nothing, not a table")),
        ("kiro", {}, UnknownTransport("there is no `command` or `url`")),
        ("claude-desktop", {}, UnknownTransport("there is no `command`")),
        ("kiro", {"<<": Opaque("an alias"), "command": "x"}, UnknownTransport("`<<` merges keys")),
        ("kiro", {"command": "x", "url": "u"}, UnknownTransport("it has both `command` and `url`")),
        (
            "gemini",
            {"url": "x", "httpUrl": "u"},
            UnknownTransport("it has both `url` and `httpUrl`"),
        ),
        ("kiro", {"command": "x", "type": "http"}, UnknownTransport("`type` is 'http'")),
        ("kiro", {"url": "x", "type": "stdio"}, UnknownTransport("`type` is 'stdio'")),
        ("kiro", {"url": "x", "type": []}, UnknownTransport("`type` is a list, not text")),
        ("goose", {"type": "builtin"}, UnknownTransport("`type` is 'builtin', and there is no")),
        ("kiro", {"command": ["x"]}, UnknownTransport("`command` is a list, not text")),
        ("kiro", {"command": ""}, UnknownTransport("`command` is empty")),
        ("opencode", {"command": []}, UnknownTransport("`command` is empty")),
        ("opencode", {"command": "x"}, UnknownTransport("`command` is text, not a list")),
        ("zed", {"command": {"path": "x"}}, UnknownTransport("`command` is a table, not text")),
        (
            "kiro",
            {"command": "x", "args": [1]},
            UnknownTransport("`args[0]` is a number, not text"),
        ),
        ("kiro", {"command": "x", "args": "a"}, UnknownTransport("`args` is text, not a list")),
        (
            "kiro",
            {"command": "x", "env": ["A=b"]},
            UnknownTransport("`env` is a list, not a table"),
        ),
        (
            "kiro",
            {"command": "x", "env": {"A": True}},
            UnknownTransport("`env.A` is true or false"),
        ),
        ("kiro", {"url": Opaque("an alias")}, UnknownTransport("`url` is an alias, not text")),
        ("kiro", {"command": "x", "cwd": b""}, UnknownTransport("`cwd` is a date, not text")),
    ],
)
def test_an_entry_is_read(agent: str, value: object, launch: Transport) -> None:
    found = BY_ID[agent].words.read(value)
    if isinstance(found, UnknownTransport) and isinstance(launch, UnknownTransport):
        assert found.why.replace("``", "`").startswith(launch.why)
    else:
        assert found == launch


@pytest.mark.parametrize(
    ("agent", "target", "entry"),
    [
        ("claude-code", Stub("git"), {"command": STUB, "args": ["git"]}),
        ("claude-code", ListenerUrl(URL), {"type": "http", "url": URL}),
        (
            "copilot",
            Stub("git"),
            {"type": "local", "command": STUB, "args": ["git"], "tools": ["*"]},
        ),
        ("vscode", Stub("git"), {"type": "stdio", "command": STUB, "args": ["git"]}),
        ("opencode", Stub("git"), {"type": "local", "command": [STUB, "git"]}),
        # Of an agent that Windows runs, beside WSL2.
        (
            "claude-desktop",
            Stub("git", before=FROM_WINDOWS),
            {"command": "wsl.exe", "args": ["-e", STUB, "git"]},
        ),
        (
            "opencode",
            Stub("git", before=FROM_WINDOWS),
            {"type": "local", "command": ["wsl.exe", "-e", STUB, "git"]},
        ),
        ("opencode", ListenerUrl(URL), {"type": "remote", "url": URL}),
        ("antigravity", ListenerUrl(URL), {"serverUrl": URL}),
        ("qwen", ListenerUrl(URL), {"httpUrl": URL}),
        ("devin", ListenerUrl(URL), {"transport": "http", "url": URL}),
        ("codex", ListenerUrl(URL), {"url": URL}),
        (
            "codex",
            Stub("git", ("TZ",)),
            {"command": STUB, "args": ["git"], "env_vars": ["TZ"]},
        ),
        ("goose", Stub("git", ("TZ",)), GOOSE),  # which passes its own variables on
        ("goose", Stub("git"), GOOSE),
        ("continue", Stub("git"), {"name": "git", "command": STUB, "args": ["git"]}),
    ],
)
def test_a_new_entry_is_in_the_words_of_the_agent(
    agent: str, target: Target, entry: dict[str, object]
) -> None:
    words = BY_ID[agent].words
    assert words.new_entry("git", target) == entry
    assert not isinstance(words.read(entry), UnknownTransport)


@pytest.mark.parametrize(
    ("agent", "value", "target", "dropped"),
    [
        # For an agent without a type for programs, the type for URLs is removed.
        ("devin", {"transport": "http", "url": "u"}, Stub("a"), {"url", "transport"}),
        ("kiro", {"type": "http", "url": "u"}, Stub("a"), {"url"}),
        ("kiro", {"type": "stdio", "command": "u"}, Stub("a"), set()),
        ("kiro", {"type": "stdio", "command": "u"}, ListenerUrl(URL), {"command"}),
        ("codex", {"command": "x", "env_vars": ["A", "B"]}, Stub("a", ("A",)), set()),
        ("codex", {"command": "x", "env_vars": ["A", "B"]}, Stub("a"), {"env_vars"}),
        ("codex", {"command": "x", "env_vars": ["A"]}, ListenerUrl(URL), {"command", "env_vars"}),
        ("cursor", {"auth": {}, "envFile": "x", "k": 1}, Stub("a"), {"auth", "envFile"}),
    ],
)
def test_nothing_of_theirs_is_left(
    agent: str, value: dict[str, object], target: Target, dropped: set[str]
) -> None:
    words = BY_ID[agent].words
    settings = words.settings(value, target)
    assert words.dropped(settings, value) & value.keys() == dropped


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"command": "x", "cwd": "${workspaceFolder}"}, {"cwd"}),
        ({"command": "x", "cwd": "${CLAUDE_PROJECT_DIR:-.}"}, {"cwd"}),
        ({"command": "x", "cwd": "${workspaceFolder}/a"}, set()),
        ({"command": "x", "cwd": "/x"}, set()),
        ({"command": "x", "cwd": None}, set()),
        ({"command": "x"}, set()),
        ({"url": "u", "cwd": "${workspaceFolder}"}, set()),
    ],
)
def test_the_stub_starts_in_the_folder_that_is_open(
    value: dict[str, object], expected: set[str]
) -> None:
    assert BY_ID["vscode"].words.kept_by_stub(value) == expected
