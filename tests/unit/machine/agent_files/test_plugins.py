"""Search for plugins' files: those in known folders are found, and no others are opened."""

import json
import os
from pathlib import Path

import pytest

from mcpwrap.config.agent_files.known_agents import BY_ID
from mcpwrap.config.agent_files.plugin_layouts import PLUGINS
from mcpwrap.machine.agent_files import plugins
from mcpwrap.machine.agent_files.plugins import (
    MAX_ALL_BYTES,
    MAX_FILE_BYTES,
    MAX_PLUGINS,
    PluginFile,
)

ROWS = {row.agent: row for row in PLUGINS}
A = {"command": "/bin/a"}


class Home:
    """Home folder of an account with agents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, path: str, content: object) -> Path:
        """Write a file, as JSON unless the content is text."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    def files(self, agent: str) -> list[PluginFile]:
        """Return the files that are found for an agent."""
        words = BY_ID[agent].words
        variables = {"HOME": str(self.folder)}
        return list(plugins.files(ROWS[agent], words, os.geteuid(), variables))

    def seen(self, agent: str) -> list[tuple[str, str, str, bool]]:
        """Return the servers in short: plugin, file, name, whether it is off."""
        return [
            (
                one.plugin.id,
                str(one.path.relative_to(self.folder)),
                listed.entry.name,
                listed.is_off,
            )
            for one in self.files(agent)
            for listed in one.listed
        ]

    def problems(self, agent: str) -> list[tuple[str, str]]:
        """Return the files that were not read, each with its problem."""
        return [
            (str(one.path.relative_to(self.folder)), one.problem)
            for one in self.files(agent)
            if one.problem
        ]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path.resolve())


def installed(home: Home, **scopes: str) -> None:
    """Register plugins of a marketplace `m`, as Claude Code copies them."""
    plugins = {
        f"{name}@m": [
            {"scope": scope, "installPath": f"{home.folder}/.claude/plugins/cache/{name}"}
        ]
        for name, scope in scopes.items()
    }
    home.put(".claude/plugins/installed_plugins.json", {"version": 2, "plugins": plugins})


def marketplace(home: Home, kind: str, *plugins: object) -> None:
    """Register a marketplace `m` in a folder `shop`."""
    shop = str(home.folder / "shop")
    known = {"m": {"source": {"source": kind, "path": shop}, "installLocation": shop}}
    home.put(".claude/plugins/known_marketplaces.json", known)
    home.put("shop/.claude-plugin/marketplace.json", {"name": "m", "plugins": plugins})


@pytest.mark.parametrize("agent", ROWS)
def test_where_there_is_nothing_nothing_is_found(home: Home, agent: str) -> None:
    assert home.files(agent) == []


def test_claude_code_has_the_plugins_of_its_registry(home: Home) -> None:
    installed(home, a="user", b="local")
    cache = ".claude/plugins/cache"
    home.put(f"{cache}/a/.claude-plugin/plugin.json", {"mcpServers": ["./more.json", {"x": A}]})
    home.put(f"{cache}/a/more.json", {"bare": A})
    home.put(f"{cache}/a/.mcp.json", {"mcpServers": {"y": A}})
    home.put(f"{cache}/b/.claude-plugin/plugin.json", {"name": "b"})
    home.put(f"{cache}/b/.mcp.json", {"mcpServers": {"z": A}})
    home.put(f"{cache}/gone/.mcp.json", {"mcpServers": {"old": A}})  # of an earlier version
    home.put(".claude/settings.json", {"enabledPlugins": {"a@m": False, "b@m": False}})
    assert home.seen("claude-code") == [
        ("a@m", f"{cache}/a/.claude-plugin/plugin.json", "x", True),
        ("a@m", f"{cache}/a/.mcp.json", "y", True),
        ("a@m", f"{cache}/a/more.json", "bare", True),
        ("b@m", f"{cache}/b/.mcp.json", "z", False),  # a project may turn it on
    ]


def test_claude_code_reads_no_copy_where_the_marketplace_is_a_folder(home: Home) -> None:
    installed(home, a="user")
    home.put(".claude/plugins/cache/a/.mcp.json", {"mcpServers": {"copy": A}})
    home.put("shop/a/.mcp.json", {"mcpServers": {"live": A}})
    marketplace(home, "directory", {"name": "a", "source": "./a"})
    assert home.seen("claude-code") == [("a@m", "shop/a/.mcp.json", "live", False)]
    marketplace(home, "github", {"name": "a", "source": "./a"})
    assert home.seen("claude-code") == [("a@m", ".claude/plugins/cache/a/.mcp.json", "copy", False)]
    marketplace(home, "directory", {"name": "a", "source": "./gone"})
    assert home.seen("claude-code") == [("a@m", ".claude/plugins/cache/a/.mcp.json", "copy", False)]


def test_a_marketplace_may_list_servers_for_a_plugin(home: Home) -> None:
    installed(home, a="user")
    both = [
        {"name": "a", "mcpServers": [{"x": A}, "./s.json"]},
        {"name": "b", "mcpServers": {"y": A}},
    ]
    marketplace(home, "github", *both)
    home.put(".claude/plugins/cache/a/s.json", {"mcpServers": {"z": A}})
    assert home.seen("claude-code") == [
        ("a@m", "shop/.claude-plugin/marketplace.json", "x", False),
        ("a@m", ".claude/plugins/cache/a/s.json", "z", False),
    ]


def test_claude_code_has_plugins_among_skills(home: Home) -> None:
    home.put(".claude/skills/own/.claude-plugin/plugin.json", {"mcpServers": {"x": A}})
    home.put(".claude/skills/plain/SKILL.md", "")
    [(plugin, _, server, _)] = home.seen("claude-code")
    assert (plugin, server) == ("own@skills-dir", "x")


def test_codex_has_what_is_in_its_cache(home: Home) -> None:
    cache = ".codex/plugins/cache/m"
    home.put(f"{cache}/a/1.0/.codex-plugin/plugin.json", {"mcpServers": {"x": A}})
    home.put(f"{cache}/b/2.0/.mcp.json", {"mcpServers": {"y": A, "z": A}})
    home.put(
        ".codex/config.toml",
        '[plugins."a@m"]\nenabled = true\n[plugins."b@m".mcp_servers.z]\nenabled = false\n',
    )
    assert home.seen("codex") == [
        ("a@m", f"{cache}/a/1.0/.codex-plugin/plugin.json", "x", False),
        ("b@m", f"{cache}/b/2.0/.mcp.json", "y", False),
        ("b@m", f"{cache}/b/2.0/.mcp.json", "z", True),
    ]


def test_one_manifest_counts(home: Home) -> None:
    cache = ".codex/plugins/cache/m/a/1.0"
    home.put(f"{cache}/.claude-plugin/plugin.json", {"mcpServers": {"x": A}})
    assert [server for _, _, server, _ in home.seen("codex")] == ["x"]
    home.put(f"{cache}/.codex-plugin/plugin.json", {"mcpServers": {"y": A}})
    assert [server for _, _, server, _ in home.seen("codex")] == ["y"]


def test_copilot_has_copies_and_plugins_that_it_reads_in_place(home: Home) -> None:
    home.put(".copilot/installed-plugins/g/a/.mcp.json", {"mcpServers": {"x": A}})
    home.put("shop/b/.github/mcp.json", {"mcpServers": {"y": A}})
    home.put("shop/c/.mcp.json", {"mcpServers": {"offered": A}})  # and not installed
    plugins = [{"name": "b", "source": "./b"}, {"name": "c", "source": "./c"}]
    home.put("shop/.github/plugin/marketplace.json", {"plugins": plugins})
    source = {"source": "directory", "path": str(home.folder / "shop")}
    home.put(
        ".copilot/settings.json",
        {
            "extraKnownMarketplaces": {"m": {"source": source}},
            "enabledPlugins": {"a@g": True, "b@m": True},
            "disabledMcpServers": ["x"],
        },
    )
    assert home.seen("copilot") == [
        ("a@g", ".copilot/installed-plugins/g/a/.mcp.json", "x", True),
        ("b@m", "shop/b/.github/mcp.json", "y", False),
    ]


@pytest.mark.parametrize("agent", ["gemini", "qwen"])
def test_extensions_are_in_a_folder_each_or_linked(home: Home, agent: str) -> None:
    extensions, name = f".{agent}/extensions", f"{agent}-extension.json"
    home.put(f"{extensions}/a/{name}", {"name": "a", "mcpServers": {"x": A}})
    home.put(f"{extensions}/b/{name}", {"name": "b", "mcpServers": {"y": A, "z": A}})
    home.put(f"src/c/{name}", {"name": "c", "mcpServers": {"v": A}})
    source = str(home.folder / "src/c")
    home.put(f"{extensions}/c/.{agent}-extension-install.json", {"type": "link", "source": source})
    rules = {"a": {"overrides": [f"!{home.folder}/*"]}, "b": {"overrides": [f"{home.folder}/*"]}}
    home.put(f"{extensions}/extension-enablement.json", rules)
    home.put(f".{agent}/settings.json", {"mcp": {"excluded": ["z"]}})
    assert home.seen(agent) == [
        ("a", f"{extensions}/a/{name}", "x", True),
        ("b", f"{extensions}/b/{name}", "y", False),
        ("b", f"{extensions}/b/{name}", "z", True),
        ("c", f"src/c/{name}", "v", False),
    ]


def test_a_file_that_is_not_read_is_reported(home: Home) -> None:
    folder = ".gemini/extensions/a"
    home.put(f"{folder}/gemini-extension.json", "{")
    [(path, problem)] = home.problems("gemini")
    assert path == f"{folder}/gemini-extension.json"
    assert problem.startswith("1:2: not JSON")
    home.put(f"{folder}/gemini-extension.json", " " * (2**20 + 1))
    assert home.problems("gemini") == [(path, "over 1 MiB")]
    many = {str(n): A for n in range(1001)}
    home.put(f"{folder}/gemini-extension.json", {"mcpServers": many})
    assert home.problems("gemini") == [(path, "1001 servers")]


def test_no_file_outside_a_plugin_is_read(home: Home) -> None:
    key = home.put(".ssh/key.json", {"a": A})
    installed(home, a="user")
    cache = ".claude/plugins/cache/a"
    names = ["../../../../.ssh/key.json", str(key)]
    home.put(f"{cache}/.claude-plugin/plugin.json", {"mcpServers": names})
    (home.folder / cache / ".mcp.json").symlink_to(key)
    assert home.seen("claude-code") == []
    assert sorted(problem for _, problem in home.problems("claude-code")) == [
        f"is a symbolic link to '{key}', which is not followed",
        f"leads to '{key}', outside the folder that it belongs to",
        f"leads to '{key}', outside the folder that it belongs to",
    ]


@pytest.mark.parametrize("folder", ["rel", "", "/nowhere\0", "/\ud800", "/dev", "/proc/self/fd"])
def test_a_path_that_is_not_a_folder_has_no_plugin(home: Home, folder: str) -> None:
    record = [{"scope": "user", "installPath": folder}]
    home.put(".claude/plugins/installed_plugins.json", {"plugins": {"a@m": record}})
    assert home.seen("claude-code") == []


def test_a_registry_that_is_not_read_is_reported(home: Home) -> None:
    file = home.put(".claude/plugins/installed_plugins.json", "[]")
    [(path, problem)] = home.problems("claude-code")
    assert path == str(file.relative_to(home.folder))
    assert problem.endswith("not a JSON object")


def test_unread_settings_are_reported_where_they_could_turn_a_server_off(
    home: Home,
) -> None:
    home.put(".claude/settings.json", "{")
    assert home.problems("claude-code") == []
    home.put(".claude/skills/own/.mcp.json", {"mcpServers": {"x": A}})
    [(path, _)] = home.problems("claude-code")
    assert path == ".claude/settings.json"
    assert home.seen("claude-code")[0][3] is False


def test_too_many_plugins_are_not_read(home: Home) -> None:
    for number in range(MAX_PLUGINS + 1):  # of more, the file system says which are looked at
        (home.folder / f".qwen/extensions/{number:04}").mkdir(parents=True)
    home.put(".qwen/extensions/0000/qwen-extension.json", {"mcpServers": {"x": A}})
    assert len(home.seen("qwen")) == 1
    [(_, problem)] = home.problems("qwen")
    assert problem == f"over {MAX_PLUGINS} plugins: this one and the rest are not read"


def test_too_many_further_files_are_not_read(home: Home) -> None:
    files = [f"./{number}.json" for number in range(17)]
    home.put(".claude/skills/own/.claude-plugin/plugin.json", {"mcpServers": files})
    assert home.problems("claude-code") == [
        (".claude/skills/own", "names 17 further files: only 16 are read")
    ]
    many = {str(number): {"installLocation": "/nowhere"} for number in range(257)}
    home.put(".claude/plugins/known_marketplaces.json", many)
    assert (
        ".claude/plugins/known_marketplaces.json",
        "over 256 marketplaces: the rest are not read",
    ) in home.problems("claude-code")


def test_a_plugin_that_is_installed_twice_is_one(home: Home) -> None:
    folder = str(home.folder / "p")
    home.put("p/.mcp.json", {"mcpServers": {"x": A}})
    record = {"scope": "user", "installPath": folder}
    home.put(".claude/plugins/installed_plugins.json", {"plugins": {"a@m": [record, record]}})
    assert len(home.seen("claude-code")) == 1


def test_a_link_that_leads_nowhere_hides_no_other_plugin(home: Home) -> None:
    """As `ln -s loop loop`: that one is reported, and the rest are found."""
    home.put(".gemini/extensions/a/gemini-extension.json", {"mcpServers": {"x": A}})
    (home.folder / ".gemini/extensions/loop").symlink_to("loop")
    assert [server for _, _, server, _ in home.seen("gemini")] == ["x"]
    assert {path.split("/")[2] for path, _ in home.problems("gemini")} == {"loop"}


def test_a_marketplace_cannot_name_a_folder_that_stops_the_search(home: Home) -> None:
    home.put(".claude/skills/own/.mcp.json", {"mcpServers": {"x": A}})
    home.put(".claude/settings.json", {"enabledPlugins": {"a@m": True}})
    marketplace(home, "directory", {"name": "a", "source": "x" * 300})
    assert [server for _, _, server, _ in home.seen("claude-code")] == ["x"]


def test_too_many_folders_are_reported_where_plugins_are_further_down(home: Home) -> None:
    plugins = home.folder / ".copilot/installed-plugins"
    for number in range(MAX_PLUGINS + 1):
        (plugins / f"{number:04}").mkdir(parents=True)
    assert home.problems("copilot") == [
        (".copilot/installed-plugins", f"over {MAX_PLUGINS} folders: some are not searched")
    ]


def test_a_link_in_the_place_of_plugins_that_cannot_be_resolved_is_reported(home: Home) -> None:
    home.put(".codex/plugins/cache/m/a/1.0/.mcp.json", {"mcpServers": {"x": A}})
    (home.folder / ".codex/plugins/cache/loop").symlink_to("loop")
    assert [server for _, _, server, _ in home.seen("codex")] == ["x"]
    [(path, _)] = home.problems("codex")
    assert path == ".codex/plugins/cache/loop"


def test_unread_settings_are_reported_where_they_could_name_a_plugin(home: Home) -> None:
    home.put("shop/b/.mcp.json", {"mcpServers": {"y": A}})
    source = {"source": "directory", "path": str(home.folder / "shop")}
    dotfile = {"extraKnownMarketplaces": {"m": {"source": source}}, "enabledPlugins": {"b@m": True}}
    home.put("dotfiles/copilot.json", dotfile)
    settings = home.folder / ".copilot/settings.json"
    settings.parent.mkdir()
    settings.symlink_to(home.folder / "dotfiles/copilot.json")
    [(path, _)] = home.problems("copilot")
    assert path == ".copilot/settings.json"


def test_a_name_with_a_slash_before_it_may_be_below_the_plugin(home: Home) -> None:
    folder = ".copilot/installed-plugins/g/a"
    home.put(f"{folder}/plugin.json", {"mcpServers": "/more.json"})
    home.put(f"{folder}/more.json", {"mcpServers": {"x": A}})
    assert home.seen("copilot") == [("a@g", f"{folder}/more.json", "x", False)]


def test_no_more_is_read_of_all_plugins_together_than_fits_in_memory(home: Home) -> None:
    number = MAX_ALL_BYTES // MAX_FILE_BYTES + 2
    filler = " " * (MAX_FILE_BYTES - 100)
    for each in range(number):
        text = json.dumps({"mcpServers": {"x": A}}) + filler
        home.put(f".qwen/extensions/{each:02}/qwen-extension.json", text)
    assert len(home.seen("qwen")) == number - 1
    assert home.problems("qwen") == [
        (
            f".qwen/extensions/{number - 1:02}/qwen-extension.json",
            "over 8 MiB of such files: this one is not read",
        )
    ]
