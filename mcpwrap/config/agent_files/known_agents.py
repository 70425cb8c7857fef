"""Table of supported agents: their files, the places of servers in these, and their keys.

A new agent is one row, and a fixture in tests/unit/config/agent_files. Sources: the behaviour of
the tools (Claude Code, Codex, Copilot, Gemini, opencode, Qwen), and the manuals of the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mcpwrap.config.agent_files.entry_schema import EntrySchema
from mcpwrap.config.agent_files.parsed_file import At
from mcpwrap.config.agent_files.syntax.document import Language
from mcpwrap.core.mount_layout import is_held

Scope = Literal["user", "project", "managed", "plugin"]
_PLAIN = EntrySchema()
_SERVERS: tuple[At, ...] = (("mcpServers",),)
# Defaults of variables that the environment does not set. The first of VARIABLES has no default.
_USUAL = {
    "XDG_CONFIG_HOME": "$HOME/.config",
    "CLAUDE_CONFIG_DIR": "$HOME",
    "CODEX_HOME": "$HOME/.codex",
    "COPILOT_HOME": "$HOME/.copilot",
    "CLINE_MCP_SETTINGS_PATH": "$HOME/.cline/data/settings/cline_mcp_settings.json",
}
VARIABLES = ("HOME", *_USUAL)


@dataclass(frozen=True, slots=True)
class AgentFile:
    """File in which an agent lists servers."""

    scope: Scope
    path: str  # relative to a project's folder, or absolute; may begin with `$NAME`
    at: tuple[At, ...] = _SERVERS

    @property
    def language(self) -> Language:
        """Return the language of the file."""
        match self.path.rpartition(".")[2]:
            case "toml":
                return "toml"
            case "yaml" | "yml":
                return "yaml"
            case _:
                return "json"  # with comments: a file of an agent without them has none

    def place(self, variables: Mapping[str, str]) -> str:
        """Return the path with these variables; an empty one counts as unset (XDG)."""
        head, slash, rest = self.path.partition("/")
        if not head.startswith("$"):
            return self.path
        name = head[1:]
        value = variables.get(name) or _USUAL[name].replace("$HOME", variables["HOME"])
        return f"{value}{slash}{rest}"


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """Supported agent, with its files and the keys of its entries."""

    id: str  # as in `mcpwrap convert --client`
    title: str
    files: tuple[AgentFile, ...]
    words: EntrySchema = _PLAIN
    has_list: bool = False  # its servers are a list, and each entry has its name in it


def _user(path: str, *at: At) -> AgentFile:
    return AgentFile("user", path, at or _SERVERS)


def _project(path: str, *at: At) -> AgentFile:
    if not is_held(path):  # a server that can write it chooses what the agent starts next
        raise ValueError(f"{path} is not in HELD of core/mount_layout.py")
    return AgentFile("project", path, at or _SERVERS)


def _managed(path: str, *at: At) -> AgentFile:
    return AgentFile("managed", path, at or _SERVERS)


_CODEX = ("mcp_servers",)
_OPENCODE = (("mcp",), ("mcp", "servers"))
_AMP = ("amp.mcpServers",)
_CODE = "$XDG_CONFIG_HOME/Code/User"
_GEMINI = ("authProviderType", "targetAudience", "targetServiceAccount")

AGENTS = (
    KnownAgent(
        "claude-code",
        "Claude Code",
        (
            _user("$CLAUDE_CONFIG_DIR/.claude.json", *_SERVERS, ("projects", None, "mcpServers")),
            _project(".mcp.json"),
            _managed("/etc/claude-code/managed-mcp.json"),
        ),
        EntrySchema(names_remote=True),
    ),
    KnownAgent(
        "claude-desktop",
        "Claude Desktop",
        (_user("$XDG_CONFIG_HOME/Claude/claude_desktop_config.json"),),
        EntrySchema(urls=()),
    ),
    KnownAgent(
        "codex",
        "Codex",
        (
            _user("$CODEX_HOME/config.toml", _CODEX),
            _project(".codex/config.toml", _CODEX),
            _managed("/etc/codex/config.toml", _CODEX),
        ),
        EntrySchema(
            headers="http_headers",
            type="",
            inherits="env_vars",
            further=(
                "bearer_token_env_var",
                "env_http_headers",
                "http_headers_helper",
                "scopes",
                "oauth_resource",
                "environment_id",
            ),
        ),
    ),
    KnownAgent(
        "copilot",
        "Copilot CLI",
        (
            _user("$COPILOT_HOME/mcp-config.json"),
            _project(".mcp.json"),
            _project(".github/mcp.json"),
        ),
        EntrySchema(local="local", names_local=True, names_remote=True, fresh={"tools": ["*"]}),
    ),
    KnownAgent(
        "vscode",
        "VS Code",
        (_user(f"{_CODE}/mcp.json", ("servers",)), _project(".vscode/mcp.json", ("servers",))),
        EntrySchema(
            names_local=True, names_remote=True, further=("sandboxEnabled", "sandbox", "dev")
        ),
    ),
    KnownAgent("cursor", "Cursor", (_user("$HOME/.cursor/mcp.json"), _project(".cursor/mcp.json"))),
    KnownAgent(
        "gemini",
        "Gemini CLI",
        (
            _user("$HOME/.gemini/settings.json"),
            _project(".gemini/settings.json"),
            _managed("/etc/gemini-cli/settings.json"),
        ),
        EntrySchema(urls=("url", "httpUrl"), local="", names_remote=True, further=_GEMINI),
    ),
    KnownAgent(
        "antigravity",
        "Antigravity",
        (
            _user("$HOME/.gemini/config/mcp_config.json"),
            _user("$HOME/.gemini/antigravity/mcp_config.json"),
            _project(".agents/mcp_config.json"),
        ),
        EntrySchema(urls=("serverUrl", "url"), local=""),
    ),
    KnownAgent(
        "devin",
        "Devin Desktop",
        (_user("$XDG_CONFIG_HOME/devin/mcp_config.json"), _project(".devin/mcp_config.json")),
        EntrySchema(urls=("url", "serverUrl"), type="transport", local="", names_remote=True),
    ),
    KnownAgent(
        "windsurf",
        "Windsurf",
        (_user("$HOME/.codeium/windsurf/mcp_config.json"),),
        EntrySchema(urls=("serverUrl", "url"), local=""),
    ),
    KnownAgent(
        "zed",
        "Zed",
        (
            _user("$XDG_CONFIG_HOME/zed/settings.json", ("context_servers",)),
            _project(".zed/settings.json", ("context_servers",)),
        ),
    ),
    KnownAgent(
        "cline",
        "Cline",
        (
            _user("$CLINE_MCP_SETTINGS_PATH"),
            _user(f"{_CODE}/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
        ),
        EntrySchema(remote="streamableHttp", names_remote=True),
    ),
    KnownAgent(
        "opencode",
        "opencode",
        tuple(
            file(f"{folder}/opencode.{ending}".removeprefix("./"), *_OPENCODE)
            for file, folder in (
                (_user, "$XDG_CONFIG_HOME/opencode"),
                (_project, "."),
                (_project, ".opencode"),
            )
            for ending in ("json", "jsonc")
        ),
        EntrySchema(
            args="",
            env="environment",
            local="local",
            remote="remote",
            names_local=True,
            names_remote=True,
        ),
    ),
    KnownAgent(
        "goose",
        "Goose",
        (_user("$XDG_CONFIG_HOME/goose/config.yaml", ("extensions",)),),
        EntrySchema(
            command="cmd",
            env="envs",
            urls=("uri",),
            remote="streamable_http",
            names_local=True,
            names_remote=True,
            further=("env_keys",),
            name="name",
            fresh={"enabled": True},
        ),
    ),
    KnownAgent(
        "amp",
        "Amp",
        (
            _user("$XDG_CONFIG_HOME/amp/settings.json", _AMP),
            _user("$XDG_CONFIG_HOME/amp/settings.jsonc", _AMP),
            _project(".amp/settings.json", _AMP),
            _project(".amp/settings.jsonc", _AMP),
            _managed("/etc/ampcode/managed-settings.json", _AMP),
        ),
    ),
    KnownAgent(
        "qwen",
        "Qwen Code",
        (
            _user("$HOME/.qwen/settings.json"),
            _project(".qwen/settings.json"),
            _project(".mcp.json"),
        ),
        EntrySchema(urls=("httpUrl", "url"), local="", further=_GEMINI),
    ),
    KnownAgent(
        "kiro",
        "Kiro",
        (_user("$HOME/.kiro/settings/mcp.json"), _project(".kiro/settings/mcp.json")),
    ),
    KnownAgent(
        "continue",
        "Continue",
        (_user("$HOME/.continue/config.yaml"),),
        EntrySchema(
            remote="streamable-http",
            names_remote=True,
            name="name",
            further=("requestOptions", "apiKey"),
        ),
        has_list=True,
    ),
)
BY_ID = {agent.id: agent for agent in AGENTS}
