"""Hubs and their members: what may be written, and what is an error."""

import json

import pytest

from mcpwrap.config.file_types.config_file import (
    MAX_MEMBERS,
    HubSettings,
    ProgramSettings,
    RemoteSettings,
)
from mcpwrap.config.file_types.fields import keys_of, keys_without
from mcpwrap.config.hub import MAX_INSTRUCTIONS_BYTES
from mcpwrap.config.model import Config, ConfigError, Hub, HubMember, Problem
from mcpwrap.config.parse import parse, parse_part
from mcpwrap.config.toml_writer import toml_of
from tests.unit.config.places import source

SERVERS = """
[mcp_servers.git]
command = '/x'
[mcp_servers.web]
url = 'https://x.example/'
[mcp_servers.py]
python = '/usr/bin/python3'
[mcp_servers.other]
members.git = {}
"""
GIT = "[mcp_servers.tools.members.git]\n"
WEB = "[mcp_servers.tools.members.web]\n"
OURS = f"{GIT}[mcp_servers.tools.mcpwrap]\n"


def parsed(text: str) -> Config:
    return parse([source(SERVERS), source(text, "hub.toml")])


def problems(text: str) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        parsed(text)
    return list(caught.value.problems)


@pytest.mark.parametrize(
    ("text", "members"),
    [
        (GIT, [HubMember(name="git", namespace="git")]),
        ("[mcp_servers.tools]\nmembers = { web = {}, git = {} }",
         [HubMember(name="git", namespace="git"), HubMember(name="web", namespace="web")]),
        (f"{GIT}namespace = 'g-1_B'\ntransports = ['http']\ninstructions = 'For \"git\".'",
         [HubMember(name="git", namespace="g-1_B", transports=("http",),
                    instructions='For "git".')]),
        (f"{GIT}namespace = ''\n{WEB}",  # one may keep its names
         [HubMember(name="git", namespace=""), HubMember(name="web", namespace="web")]),
        (f"{GIT}transports = ['http', 'stdio', 'http']", [HubMember(name="git", namespace="git")]),
        (f"[mcp_servers.tools.members.py]\nnamespace = '{'a' * 40}'",
         [HubMember(name="py", namespace="a" * 40)]),
    ],
)  # fmt: skip
def test_the_members_of_a_hub(text: str, members: list[HubMember]) -> None:
    hub = parsed(text).servers["tools"]
    assert hub.runs == Hub(members=tuple(members))
    assert hub.secrets() == frozenset()
    assert not hub.has_network()
    assert parse_part([source(toml_of(hub))]).servers == {"tools": hub}


def test_a_hub_written_as_toml() -> None:
    text = f"{OURS}agents = ['alice']\nexpose = 'http'\nlimits = {{ sessions = 4 }}"
    hub = parsed(f"{text}\n{WEB}namespace = ''\ninstructions = \"a\\nb\"\ntransports = ['stdio']")
    assert (
        toml_of(hub.servers["tools"])
        == """\
[mcp_servers.tools.members.git]
namespace = "git"

[mcp_servers.tools.members.web]
namespace = ""
instructions = "a\\nb"
transports = ["stdio"]

[mcp_servers.tools.mcpwrap]
agents = ["alice"]
expose = "http"
limits = { sessions = 4 }
"""
    )


def test_a_file_on_its_own_may_have_a_hub_of_servers_of_others() -> None:
    assert list(parse_part([source(GIT)]).servers) == ["tools"]
    with pytest.raises(ConfigError, match="no server of this name"):
        parse([source(GIT)])


@pytest.mark.parametrize(
    ("text", "table", "key", "code"),
    [
        ("[mcp_servers.tools.members]", ".members", "", "E-HUB-EMPTY"),
        ("[mcp_servers.tools]\nmembers = ['git']", ".members", "", "E-HUB-EMPTY"),
        (f"{GIT}namespaces = 'g'", ".members.git", "namespaces", "E-CONFIG-UNKNOWN-KEY"),
        (f"{GIT}namespace = 'a/b'", ".members.git", "namespace", "E-HUB-NAMESPACE"),
        (f"{GIT}namespace = 'a__b'", ".members.git", "namespace", "E-HUB-NAMESPACE"),
        (f"{GIT}namespace = 'a_'", ".members.git", "namespace", "E-HUB-NAMESPACE"),
        (f"{GIT}namespace = 'é'", ".members.git", "namespace", "E-HUB-NAMESPACE"),
        (f"{GIT}namespace = '{'a' * 41}'", ".members.git", "namespace", "E-HUB-NAMESPACE"),
        (f"{GIT}namespace = 1", ".members.git", "namespace", "E-CONFIG-TYPE"),
        (f"{GIT}transports = []", ".members.git", "transports", "E-CONFIG-EMPTY-LIST"),
        (f"{GIT}transports = ['sse']", ".members.git", "transports[0]", "E-HUB-TRANSPORT"),
        (f'{GIT}instructions = "\\u0000"', ".members.git", "instructions", "E-CONFIG-TEXT"),
        (f"{GIT}instructions = '{'é' * (MAX_INSTRUCTIONS_BYTES // 2 + 1)}'", ".members", "",
         "E-HUB-INSTRUCTIONS"),
        (f"{GIT}namespace = 'web'\n{WEB}", ".members", "web", "E-HUB-NAMESPACE-TWICE"),
        (f"{GIT}namespace = ''\n{WEB}namespace = ''", ".members", "web", "E-HUB-NAMESPACE-TWICE"),
        ("[mcp_servers.tools.members.Git]", ".members", "'Git'", "E-CONFIG-SERVER-NAME"),
        ("[mcp_servers.tools.members.ghost]", ".members.ghost", "", "E-HUB-MEMBER-UNKNOWN"),
        ("[mcp_servers.tools.members.tools]", ".members.tools", "", "E-HUB-MEMBER-HUB"),
        ("[mcp_servers.tools.members.other]", ".members.other", "", "E-HUB-MEMBER-HUB"),
        ("[mcp_servers.tools]\ncommand = '/x'\n" + GIT, "", "", "E-CONFIG-COMMAND-OR-URL"),
        (f"{GIT}[mcp_servers.tools]\nargs = []", "", "args", "E-HUB-SETTING"),
        (f"{GIT}[mcp_servers.tools]\nenv = {{}}", "", "env", "E-HUB-SETTING"),
        (f"{GIT}[mcp_servers.tools]\ninherits_any = ['A']", "", "inherits_any", "E-HUB-SETTING"),
        (f"{GIT}[mcp_servers.tools]\nagents = ['a']", "", "agents", "E-CONFIG-UNKNOWN-KEY"),
        (f"{OURS}packages = ['numpy']", ".mcpwrap", "packages", "E-CONFIG-UNKNOWN-KEY"),
        (f"{OURS}limits = {{ state = '1G' }}", ".mcpwrap.limits", "state", "E-CONFIG-LIMIT-UNUSED"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_where_it_is(text: str, table: str, key: str, code: str) -> None:
    found = {(p.file, p.table, p.key, p.code) for p in problems(text)}
    assert ("hub.toml", f"[mcp_servers.tools{table}]", key, code) in found
    if code not in {"E-HUB-EMPTY", "E-CONFIG-COMMAND-OR-URL"}:
        assert len(found) == 1


@pytest.mark.parametrize("key", keys_without(HubSettings, ProgramSettings, RemoteSettings))
def test_settings_of_programs_are_refused(key: str) -> None:
    [found] = problems(f"{OURS}{key} = 'x'")
    assert (found.table, found.key) == ("[mcp_servers.tools.mcpwrap]", key)
    assert found.code == "E-HUB-SETTING"


def test_what_a_hub_may_set() -> None:
    lines = (
        "agents = ['alice']", "expose = 'http'", "audit = 'plain'", "allow_degraded = true",
        "idle_exit = 'never'", "limits = { memory = '1G', tasks = 9, cpu = '50%', sessions = 3 }",
    )  # fmt: skip
    assert [line.partition(" ")[0] for line in lines] == list(keys_of(HubSettings))
    hub = parsed(OURS + "\n".join(lines)).servers["tools"]
    assert (hub.agents, hub.expose, hub.audit, hub.allow_degraded, hub.idle_exit_s) == (
        ("alice",), "http", "plain", True, 0,
    )  # fmt: skip
    assert hub.limits.sessions == 3
    assert parse_part([source(toml_of(hub))]).servers == {"tools": hub}


def test_a_member_that_the_gate_does_not_judge_is_refused() -> None:
    direct = "[mcp_servers.fast]\ncommand = '/x'\n[mcp_servers.fast.mcpwrap]\nrelay = '{}'\n"
    text = f"{direct}[mcp_servers.tools.members.fast]\n"
    [found] = problems(text.format("direct"))
    assert (found.table, found.code) == ("[mcp_servers.tools.members.fast]", "E-HUB-MEMBER-DIRECT")
    assert "tools" in parsed(text.format("gate")).servers


def test_the_namespace_of_a_long_name_must_be_written() -> None:
    hub = "h" * 26
    text = f"[mcp_servers.{'m' * 20}]\ncommand = '/x'\n[mcp_servers.{hub}.members.{'m' * 20}]\n"
    [found] = problems(text)
    assert (found.key, found.code) == ("namespace", "E-HUB-NAMESPACE")
    assert found.problem.startswith("is not set, and ")
    assert found.fix.endswith("at most 19 characters")
    assert hub in parsed(f"{text}namespace = '{'m' * 19}'").servers


def test_a_hub_has_a_name_that_agents_do_not_split() -> None:
    text = "[mcp_servers.my{}tools.members.git]\n"
    [found] = problems(text.format("_"))
    assert (found.table, found.code) == ("[mcp_servers.my_tools]", "E-HUB-NAME")
    assert "my-tools" in parsed(text.format("-")).servers


def test_a_hub_has_a_bound_of_members() -> None:
    names = [f"m{number}" for number in range(MAX_MEMBERS + 1)]
    servers = "".join(f"[mcp_servers.{name}]\ncommand = '/x'\n" for name in names)
    hub = "".join(f"[mcp_servers.tools.members.{json.dumps(name)}]\n" for name in names)
    [found] = problems(servers + hub)
    assert found.problem == f"{MAX_MEMBERS + 1} members"
    fewer = hub.replace('[mcp_servers.tools.members."m0"]\n', "")
    assert "tools" in parsed(servers + fewer).servers


def test_all_problems_are_found_at_once() -> None:
    text = (
        f"{GIT}namespace = 'a/b'\n[mcp_servers.tools.members.ghost]\n[mcp_servers.tools]\ncwd = '/'"
    )
    assert [p.code for p in problems(text)] == [
        "E-HUB-SETTING", "E-HUB-NAMESPACE", "E-HUB-MEMBER-UNKNOWN",
    ]  # fmt: skip
