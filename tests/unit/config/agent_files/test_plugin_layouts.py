"""Table of plugins: their folders, their names in settings, and the settings that turn them off."""

import pytest

from mcpwrap.config.agent_files.known_agents import BY_ID
from mcpwrap.config.agent_files.plugin_layouts import PLUGINS, Plugin, PluginLayout, is_off_at_home

HOME = {"HOME": "/home/alice"}
ROWS = {row.agent: row for row in PLUGINS}
HELPER = Plugin("helper@local", "/p")
OF_PROJECT = Plugin("helper@local", "/p", is_personal=False)
DOCS = Plugin("docs", "/d")


@pytest.mark.parametrize("row", PLUGINS, ids=lambda row: row.agent)
def test_each_row_is_of_an_agent_and_below_the_home_folder(row: PluginLayout) -> None:
    assert row.agent in BY_ID
    places = [row.settings, *row.folders, *row.watched, *row.marketplaces[:1]]
    places += [path for path in (row.registry, row.enablement) if path]
    for path in places:
        assert row.place(path, HOME).startswith("/home/alice/.")
    assert row.folders or row.registry
    assert all(not name.startswith("/") for name in (*row.manifests, *row.lists))


@pytest.mark.parametrize(
    ("agent", "variables", "place"),
    [
        ("claude-code", {}, "/home/alice/.claude/settings.json"),
        ("claude-code", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/settings.json"),
        ("codex", {}, "/home/alice/.codex/config.toml"),
        ("codex", {"CODEX_HOME": "/c"}, "/c/config.toml"),
        ("copilot", {}, "/home/alice/.copilot/settings.json"),
        ("copilot", {"COPILOT_HOME": ""}, "/home/alice/.copilot/settings.json"),
        ("gemini", {}, "/home/alice/.gemini/settings.json"),
        ("qwen", {}, "/home/alice/.qwen/settings.json"),
    ],
)
def test_settings_are_somewhere(agent: str, variables: dict[str, str], place: str) -> None:
    assert ROWS[agent].place(ROWS[agent].settings, HOME | variables) == place


@pytest.mark.parametrize(
    ("agent", "folder", "name"),
    [
        ("claude-code", "/h/.claude/skills/own", "own@skills-dir"),
        ("codex", "/h/.codex/plugins/cache/local/helper/1.0.0", "helper@local"),
        ("copilot", "/h/.copilot/installed-plugins/local/helper", "helper@local"),
        ("gemini", "/h/.gemini/extensions/docs", "docs"),
    ],
)
def test_a_folder_says_how_settings_name_it(agent: str, folder: str, name: str) -> None:
    assert ROWS[agent].id_of(folder) == name


@pytest.mark.parametrize(
    ("agent", "plugin", "settings", "is_off"),
    [
        ("claude-code", HELPER, {}, False),
        ("claude-code", HELPER, None, False),
        ("claude-code", HELPER, {"enabledPlugins": {"helper@local": True}}, False),
        ("claude-code", HELPER, {"enabledPlugins": {"helper@local": False}}, True),
        ("claude-code", HELPER, {"enabledPlugins": {"helper@local": 0}}, False),
        ("claude-code", OF_PROJECT, {"enabledPlugins": {"helper@local": False}}, False),
        (
            "claude-code",
            OF_PROJECT,
            {"deniedMcpServers": [{"serverName": "plugin:helper:db"}]},
            True,
        ),
        ("claude-code", HELPER, {"deniedMcpServers": [{"serverName": "plugin:x:db"}]}, False),
        ("claude-code", HELPER, {"deniedMcpServers": [{"serverName": "db"}]}, False),
        ("codex", HELPER, {"plugins": {"helper@local": {"enabled": False}}}, True),
        ("codex", HELPER, {"plugins": {"helper@local": {"enabled": True}}}, False),
        (
            "codex",
            HELPER,
            {"plugins": {"helper@local": {"mcp_servers": {"db": {"enabled": False}}}}},
            True,
        ),
        (
            "codex",
            HELPER,
            {"plugins": {"helper@local": {"mcp_servers": {"x": {"enabled": False}}}}},
            False,
        ),
        ("copilot", HELPER, {"disabledMcpServers": ["db"]}, True),
        ("copilot", HELPER, {"disabledMcpServers": "db"}, False),
        ("copilot", HELPER, {"disabledMcpServers": False}, False),  # it does not turn anything off
        ("claude-code", HELPER, {"deniedMcpServers": False}, False),
        ("claude-code", HELPER, {"enabledPlugins": {"helper@local": ["db"]}}, False),
        ("gemini", DOCS, {"mcp": {"excluded": ["db"]}}, True),
        ("qwen", DOCS, {"mcp": {"excluded": ["x"]}}, False),
        ("qwen", DOCS, {"mcp": []}, False),
    ],
)
def test_settings_turn_a_server_off(
    agent: str,
    plugin: Plugin,
    settings: object,
    is_off: bool,  # noqa: FBT001 - a table
) -> None:
    assert ROWS[agent].is_off(settings, plugin, "db") == is_off


@pytest.mark.parametrize(
    ("rules", "is_off"),
    [
        (["!/home/alice/*"], True),
        (["/home/alice/*"], False),
        (["!/home/alice/*", "/home/alice/src/*"], False),  # on in that folder
        (["/home/alice/src/*", "!/home/alice/*"], True),
        (["!/home/alice/src/*"], False),
        ([], False),
        ("!/home/alice/*", False),
    ],
)
def test_the_last_rule_turns_an_extension_off(rules: object, is_off: bool) -> None:  # noqa: FBT001
    assert is_off_at_home({"docs": {"overrides": rules}}, DOCS, "/home/alice") == is_off
    assert not is_off_at_home({"other": {"overrides": rules}}, DOCS, "/home/alice")


def test_what_to_do_names_the_file_and_what_is_written_there() -> None:
    said = ROWS["claude-code"].advice(HELPER, "db", HOME)
    assert "/home/alice/.claude/settings.json" in said
    assert '{"serverName": "plugin:helper:db"}' in said
    assert (
        ROWS["codex"]
        .advice(HELPER, "db", HOME)
        .startswith(
            "turn it off in the agent (/home/alice/.codex/config.toml: "
            '[plugins."helper@local".mcp_servers.db] enabled = false)'
        )
    )
    assert '"disabledMcpServers": ["db"]' in ROWS["copilot"].advice(HELPER, "db", HOME)
