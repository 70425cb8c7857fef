"""Table of agents' plugins and extensions, which bring servers in folders of their own.

Each agent known to have them is one row. Sources: the behaviour of the tools (Claude Code 2.1,
Codex 0.169, Copilot CLI 1.0, Gemini CLI 0.61, Qwen Code 0.15), and, for the folder into which
Copilot copies what it does not read in place, its manual.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcpwrap.config.agent_files.syntax.document import at_keys

ID = "{id}"  # among keys: the plugin's name in settings
SERVER = "{server}"  # among keys: the server's name
_OWN = "/etc/mcpwrap/config.toml"


@dataclass(frozen=True, slots=True)
class Plugin:
    """Installed plugin or extension."""

    id: str  # NAME@MARKETPLACE, or the name of its folder
    folder: str
    is_personal: bool = True  # else a project's settings turn it on and off, which are not read

    @property
    def name(self) -> str:
        """Return the id without its marketplace."""
        return self.id.rpartition("@")[0] or self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginLayout:
    """Row of one agent: places of its plugins, server lists, and settings that turn them off."""

    agent: str
    settings: str
    off: tuple[tuple[str, ...], ...]  # keys in `settings`: false, or a list of servers, is off
    how: str  # the line for `settings` that turns one server off
    manifests: tuple[str, ...]  # candidates for the manifest of a plugin; the first that exists
    lists: tuple[str, ...] = ()  # files in a plugin that list servers
    folders: tuple[str, ...] = ()  # folders of plugins; `*` is any one name
    id: tuple[int, ...] = (-1,)  # the parts of the path of such a folder that form its `id`
    of: str = ""  # the marketplace of these folders, if the path does not have it
    link: str = ""  # the file in a folder that points to the plugin's real folder
    enablement: str = ""  # the file that lists which plugins are on in which folders
    registry: str = ""  # the file that lists the folder of each plugin
    marketplaces: tuple[str, ...] = ()  # a file, and the keys of a table in it
    usual: Mapping[str, str] = field(default_factory=dict)  # variables with another default
    watched: tuple[str, ...] = ()  # files and folders that change when a plugin is installed

    def place(self, path: str, variables: Mapping[str, str]) -> str:
        """Return a path of this row with these variables."""
        head, slash, rest = path.partition("/")
        usual = self.usual.get(head, "$HOME")
        value = variables.get(head[1:]) or usual.replace("$HOME", variables["HOME"])
        return f"{value}{slash}{rest}"

    def id_of(self, folder: str) -> str:
        """Return the name in settings of the plugin in a folder of `folders`."""
        parts = folder.split("/")
        return "@".join([parts[at] for at in self.id]) + (self.of and f"@{self.of}")

    def is_off(self, settings: object, plugin: Plugin, server: str) -> bool:
        """Return whether settings turn off a plugin, or a server of it."""
        named = {ID: plugin.id, SERVER: server}
        denied = (server, {"serverName": f"plugin:{plugin.name}:{server}"})
        for keys in self.off:
            if ID in keys and not plugin.is_personal:
                continue
            found = at_keys(settings, [named.get(key, key) for key in keys])
            if ID in keys:
                is_off = found is False
            else:
                is_off = isinstance(found, list) and any(one in found for one in denied)
            if is_off:
                return True
        return False

    def advice(self, plugin: Plugin, server: str, variables: Mapping[str, str]) -> str:
        """Return the advice to a person on a server of a plugin."""
        how = self.how.replace(ID, plugin.id).replace(SERVER, server)
        how = how.replace("{name}", plugin.name)
        settings = self.place(self.settings, variables)
        return (
            f"turn it off in the agent ({settings}: {how}), and list the server"
            f" under another name in the agent's own file, for `mcpwrap wrap`, or in {_OWN}"
        )


def is_off_at_home(enablement: object, plugin: Plugin, home: str) -> bool:
    """Return whether an extension is off in the whole home folder: the last rule decides."""
    rules = at_keys(enablement, (plugin.id, "overrides"))
    return isinstance(rules, list) and rules[-1:] == [f"!{home}/*"]


_CLAUDE = "$CLAUDE_CONFIG_DIR"
_FORM = ".claude-plugin/"  # the folder of Claude Code, which other agents read as well
_EXCLUDED = '"mcp": {"excluded": ["{server}"]}'


def _extensions(agent: str, folder: str, name: str) -> PluginLayout:
    """Return the row of an agent whose extensions are laid out as in Gemini CLI."""
    return PluginLayout(
        agent=agent,
        settings=f"{folder}/settings.json",
        off=(("mcp", "excluded"),),
        how=_EXCLUDED,
        manifests=(f"{name}-extension.json",),
        folders=(f"{folder}/extensions/*",),
        link=f".{name}-extension-install.json",
        enablement=f"{folder}/extensions/extension-enablement.json",
        watched=(f"{folder}/extensions",),
    )


PLUGINS = (
    PluginLayout(
        agent="claude-code",
        settings=f"{_CLAUDE}/settings.json",
        off=(("enabledPlugins", ID), ("deniedMcpServers",)),
        how='"deniedMcpServers": [{"serverName": "plugin:{name}:{server}"}]',
        manifests=(f"{_FORM}plugin.json",),
        lists=(".mcp.json",),
        folders=(f"{_CLAUDE}/skills/*",),
        of="skills-dir",
        registry=f"{_CLAUDE}/plugins/installed_plugins.json",
        marketplaces=(f"{_CLAUDE}/plugins/known_marketplaces.json",),
        usual={_CLAUDE: "$HOME/.claude"},
        watched=(
            f"{_CLAUDE}/settings.json",
            f"{_CLAUDE}/plugins/installed_plugins.json",
            f"{_CLAUDE}/skills",
        ),
    ),
    PluginLayout(
        agent="codex",
        settings="$CODEX_HOME/config.toml",
        off=(("plugins", ID, "enabled"), ("plugins", ID, "mcp_servers", SERVER, "enabled")),
        how='[plugins."{id}".mcp_servers.{server}] enabled = false',
        manifests=(".codex-plugin/plugin.json", f"{_FORM}plugin.json"),
        lists=(".mcp.json",),
        folders=("$CODEX_HOME/plugins/cache/*/*/*",),
        id=(-2, -3),
        usual={"$CODEX_HOME": "$HOME/.codex"},
    ),
    PluginLayout(
        agent="copilot",
        settings="$COPILOT_HOME/settings.json",
        off=(("enabledPlugins", ID), ("disabledMcpServers",)),
        how='"disabledMcpServers": ["{server}"]',  # not a command: the plugin chooses the name
        manifests=tuple(
            f"{folder}plugin.json" for folder in (".plugin/", "", ".github/plugin/", _FORM)
        ),
        lists=(".mcp.json", ".github/mcp.json"),
        folders=("$COPILOT_HOME/installed-plugins/*/*",),
        id=(-1, -2),
        marketplaces=("$COPILOT_HOME/settings.json", "extraKnownMarketplaces"),
        usual={"$COPILOT_HOME": "$HOME/.copilot"},
        watched=("$COPILOT_HOME/settings.json", "$COPILOT_HOME/installed-plugins"),
    ),
    _extensions("gemini", "$HOME/.gemini", "gemini"),
    _extensions("qwen", "$HOME/.qwen", "qwen"),
)
