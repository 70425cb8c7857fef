"""Lists of proxied servers: what is read, and the reasons why a list is refused."""

import json

import pytest

from mcpwrap.config.agent_files.syntax.document import FileError
from mcpwrap.config.agent_files.transport import StdioTransport
from mcpwrap.config.migration.proxied_servers import (
    ProxiedServer,
    is_proxied_list,
    parse_proxied,
)
from mcpwrap.config.model import ConfigError
from mcpwrap.config.parse import SourceFile

LEAST: dict[str, object] = {
    "name": "my-server",
    "namespace": "myserver",
    "command": "node",
    "supportedTransports": ["stdio"],
}


def parsed(*entries: object) -> tuple[ProxiedServer, ...]:
    return parse_proxied(SourceFile("list.json", json.dumps(entries).encode()))


def problem_of(content: bytes) -> str:
    with pytest.raises((ConfigError, FileError)) as caught:
        parse_proxied(SourceFile("list.json", content))
    return "\n".join(caught.value.lines())


@pytest.mark.parametrize(
    ("content", "is_list"),
    [
        (b'[{"name": "x"}]', True),
        (b'\xef\xbb\xbf \r\n[\n  {"name": "x"}', True),
        (b"[]", True),  # and then refused: TOML cannot begin so either
        (b"[mcp_servers.git]\ncommand = 1", False),
        (b"[[a]]", False),
        (b"[1]\n", False),  # a table of TOML
        (b'{"mcpServers": {}}', False),
        (b"", False),
    ],
)
def test_a_list_is_known_by_its_beginning(content: bytes, *, is_list: bool) -> None:
    assert is_proxied_list(content) is is_list


def test_an_entry_with_all_keys() -> None:
    (found,) = parsed(
        {
            **LEAST,
            "args": ["a.js", "--x"],
            "env": {"DEBUG": "true", "LEVEL": 3},
            "inherits": ["SONARQUBE_URL", "SONARQUBE_TOKEN", "SONARQUBE_URL"],
            "supportedTransports": ["http", "stdio"],
            "instructions": "First this.",
        }
    )
    env = {"DEBUG": "true", "LEVEL": "3"}
    assert found == ProxiedServer(
        name="my-server",
        namespace="myserver",
        launch=StdioTransport(
            "node", ("a.js", "--x"), env, inherits=("SONARQUBE_URL", "SONARQUBE_TOKEN")
        ),
        transports=("stdio", "http"),
        instructions="First this.",
    )


def test_the_least_entry_gets_no_variable() -> None:
    (found,) = parsed(LEAST)
    assert found.launch == StdioTransport("node")


@pytest.mark.parametrize("value", ["", "x"])  # also the empty text is a value
def test_a_value_in_env_is_final(value: str) -> None:
    inherits = ["API_URL", "API_TOKEN"]
    (found,) = parsed({**LEAST, "env": {"API_URL": value}, "inherits": inherits})
    assert found.launch.env == {"API_URL": value}
    assert found.launch.inherits == ("API_TOKEN",)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": " "}, "`name` is empty"),
        ({"name": 3}, "`name` is a number, not text"),
        ({"command": ""}, "`command` is empty"),
        ({"args": "x"}, "`args` is text, not a list"),
        ({"args": [1]}, "`args[0]` is a number"),
        ({"env": ["x"]}, "`env` is a list, not a table"),
        ({"env": {"X": None}}, "`env.X` is nothing, not text"),
        ({"inherits": {"X": "y"}}, "`inherits` is a table, not a list"),
        ({"instructions": ["x"]}, "`instructions` is a list, not text"),
        ({"supportedTransports": []}, "`supportedTransports` is not a list of"),
        ({"supportedTransports": ["sse"]}, "`supportedTransports` is not a list of"),
        ({"cwd": "/x"}, "'cwd' is not a key of this format"),  # it would have no effect
        ({"env": {"X": "${HOME}"}}, "the value of 'X' refers to a variable"),
        ({"env": {"X": "$TOKEN"}}, "the value of 'X' refers to a variable"),
        ({"args": ["--x={env:A}"]}, "the value of 'argument 1' refers to a variable"),
        ({"inherits": ["LD_PRELOAD"]}, "LD_PRELOAD decides which code runs"),
        ({"inherits": ["a b"]}, "'a b' is not a variable name"),
    ],
)
def test_a_wrong_entry_is_refused_by_name(change: dict[str, object], problem: str) -> None:
    text = problem_of(json.dumps([LEAST, LEAST | {"name": "other"} | change]).encode())
    assert problem in text
    assert "list.json, entry 2" in text


@pytest.mark.parametrize("key", ["name", "namespace", "command", "supportedTransports"])
def test_a_needed_key_is_missing(key: str) -> None:
    entry = {name: value for name, value in LEAST.items() if name != key}
    assert f"it has no `{key}`" in problem_of(json.dumps([entry]).encode())


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[]", "it lists no server"),
        (b"[1]", "the entry is a number, not a table"),
        (b"[{", "not JSON"),
        (b'[{"env": {"A": "1", "A": "2"}}]', "'A' appears twice in one object"),
        (b"[\xff]", "not UTF-8"),
        (b"[" + b" " * 2**20 + b"]", "over 1 MiB"),
    ],
)
def test_a_file_that_is_not_such_a_list(content: bytes, problem: str) -> None:
    assert problem in problem_of(content)


def test_all_problems_are_found_in_one_pass() -> None:
    text = problem_of(json.dumps([LEAST | {"cwd": "x"}, LEAST, LEAST | {"args": 1}]).encode())
    assert "entry 1, 'my-server'" in text
    assert "entry 3, 'my-server'" in text
    assert "2 problems; nothing was changed" in text


def test_no_value_is_in_a_message() -> None:
    text = problem_of(json.dumps([LEAST | {"env": {"T": "s3cr3t-${X}"}, "args": ["t0p"]}]).encode())
    assert "s3cr3t" not in text
    assert "t0p" not in text
