"""Table `previews` of a server: read, written, refused."""

import pytest

from mcpwrap.config.model import Config, ConfigError, Server
from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.config.toml_writer import toml_of
from mcpwrap.core.wire.server_files import PreviewRule

GOOD = 'tool = "read"\narguments = { path = "at" }\ncompare = "text"\n'


def parsed(table: str, more: str = "") -> Server:
    text = f'[mcp_servers.a]\ncommand = "/x"\n[mcp_servers.a.mcpwrap]\n{more}'
    text += f"[mcp_servers.a.mcpwrap.previews.write]\n{table}"
    config: Config = parse((SourceFile("config.toml", text.encode()),))
    [server] = config.servers.values()
    return server


def test_a_preview_is_read() -> None:
    rule = PreviewRule(tool="read", arguments={"path": "at"}, compare="text")
    assert parsed(GOOD).previews == {"write": rule}


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("arguments = {}", "it names no tool"),
        ('tool = "write"\narguments = {}', "cannot be its own preview"),
        ('tool = "r"\narguments = {}\ncount = "sql"', "takes 'sql'"),
        ('tool = "r"\narguments = { q = "s" }\ncount = "s"\ncompare = "t"', "exclude each other"),
        (f"{GOOD}retries = 3", "no such setting"),
        ("tool = 5\narguments = { q = 5 }", "a number where text belongs"),
    ],
)
def test_what_is_wrong_is_said(table: str, why: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parsed(table)
    assert any(why in problem.problem for problem in raised.value.problems)


def test_a_server_without_the_gate_has_none() -> None:
    with pytest.raises(ConfigError) as raised:
        parsed(GOOD, 'relay = "direct"\n')
    assert any("does not see the messages" in one.problem for one in raised.value.problems)


def test_it_is_written_as_it_is_read() -> None:
    server = parsed(GOOD)
    written = SourceFile("config.toml", toml_of(server).encode())
    assert parse((written,)).servers == {"a": server}
