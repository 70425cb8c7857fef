"""Table of agents: the paths of their files, and the fragment for a server."""

from pathlib import PurePosixPath

import pytest

from mcpwrap.config.agent_files.entry_schema import STUB, EntrySchema, ListenerUrl, Stub, Target
from mcpwrap.config.agent_files.entry_writer import config_fragment, new_entries
from mcpwrap.config.agent_files.known_agents import AGENTS, BY_ID, VARIABLES, KnownAgent
from mcpwrap.config.agent_files.parsed_file import open_file, servers
from mcpwrap.config.agent_files.syntax.document import Language
from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport, UnknownTransport

HOME = {"HOME": "/home/alice"}


@pytest.mark.parametrize(
    ("agent", "number", "variables", "path"),
    [
        ("claude-code", 0, {}, "/home/alice/.claude.json"),
        ("claude-code", 0, {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("claude-code", 1, {}, ".mcp.json"),
        ("claude-code", 2, {}, "/etc/claude-code/managed-mcp.json"),
        ("codex", 0, {"CODEX_HOME": "/c"}, "/c/config.toml"),
        ("codex", 0, {"CODEX_HOME": ""}, "/home/alice/.codex/config.toml"),
        ("copilot", 0, {"COPILOT_HOME": "/c"}, "/c/mcp-config.json"),
        ("zed", 0, {"XDG_CONFIG_HOME": "/x"}, "/x/zed/settings.json"),
        ("zed", 0, {}, "/home/alice/.config/zed/settings.json"),
        ("cline", 0, {"CLINE_MCP_SETTINGS_PATH": "/x/y.json"}, "/x/y.json"),
        ("opencode", 1, {}, "/home/alice/.config/opencode/opencode.jsonc"),
        ("opencode", 2, {}, "opencode.json"),
    ],
)
def test_a_file_is_somewhere(agent: str, number: int, variables: dict[str, str], path: str) -> None:
    assert BY_ID[agent].files[number].place(HOME | variables) == path


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.id)
def test_each_row_is_one(agent: KnownAgent) -> None:
    assert agent.title
    for file in agent.files:
        place = PurePosixPath(file.place(dict.fromkeys(VARIABLES, "/v/x.json")))
        assert place.is_absolute() == (file.scope != "project")
        assert ".." not in place.parts
    assert len({file.path for file in agent.files}) == len(agent.files)


SERVERS = {"git": Stub("git"), "my-server": Stub("my-server")}


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.id)
@pytest.mark.parametrize("has_url", [False, True])
def test_a_fragment_is_a_file_of_that_agent(agent: KnownAgent, *, has_url: bool) -> None:
    targets: dict[str, Target] = dict(SERVERS)
    if has_url and agent.words.urls:
        targets["git"] = ListenerUrl("http://127.78.0.1:52100/")
    file = agent.files[0]
    text = config_fragment(agent, new_entries(agent, targets))
    opened = open_file("f", file.language, text.encode())
    found = servers(opened, file.at[:1], agent.words)
    assert [one.entry.name for one in found] == ["git", "my-server"]
    assert found[1].launch == StdioTransport(STUB, ("my-server",))
    if targets["git"] == Stub("git"):
        assert found[0].launch == StdioTransport(STUB, ("git",))
    else:
        assert found[0].launch == HttpTransport("http://127.78.0.1:52100/")


TEXTS = {
    "codex": """\
[mcp_servers.git]
command = "/usr/bin/mcpwrap-connect"
args = ["git"]
""",
    "continue": """\
mcpServers:
- name: git
  command: /usr/bin/mcpwrap-connect
  args:
  - git
""",
    "amp": """\
{
  "amp.mcpServers": {
    "git": {
      "command": "/usr/bin/mcpwrap-connect",
      "args": [
        "git"
      ]
    }
  }
}
""",
}


@pytest.mark.parametrize("agent", TEXTS)
def test_a_fragment_can_be_pasted(agent: str) -> None:
    found = new_entries(BY_ID[agent], {"git": Stub("git")})
    assert config_fragment(BY_ID[agent], found) == TEXTS[agent]


def test_a_table_of_servers_is_no_server() -> None:
    """Newer versions of opencode have their servers one level down."""
    opencode = BY_ID["opencode"]
    text = b"""{"mcp": {"servers": {"a": {"type": "local", "command": ["x"]}},
                        "b": {"type": "remote", "url": "u"}, "c": 5}}"""
    file = open_file("f", "json", text)
    found = servers(file, opencode.files[0].at, opencode.words)
    assert [(one.at, one.entry.name) for one in found] == [
        (("mcp",), "b"),
        (("mcp",), "c"),
        (("mcp", "servers"), "a"),
    ]
    assert isinstance(found[1].launch, UnknownTransport)
    older = open_file("f", "json", b'{"mcp": {"servers": {"type": "local", "command": ["x"]}}}')
    [one, *none] = servers(older, opencode.files[0].at, opencode.words)
    assert (one.entry.name, one.launch) == ("servers", StdioTransport("x"))
    assert all(isinstance(other.launch, UnknownTransport) for other in none)


def test_entries_of_a_list_may_have_no_name() -> None:
    file = open_file("f", "json", b'{"s": [5, {"command": "x"}, {"name": 5}]}')
    assert [one.entry.name for one in servers(file, [("s",)], EntrySchema())] == ["", "", ""]


@pytest.mark.parametrize(
    ("language", "text"),
    [("json", '{"s": {"a": 5}}'), ("toml", "s.a = 5"), ("toml", "[[s.a]]"), ("yaml", "s: {a: 5}")],
)
def test_what_is_no_table_is_no_server(language: Language, text: str) -> None:
    [one] = servers(open_file("f", language, text.encode()), [("s",)], EntrySchema())
    assert isinstance(one.launch, UnknownTransport)
    assert one.entry.members == () or language == "toml"
