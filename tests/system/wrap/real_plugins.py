"""Plugins that alice's agents install by their own commands; without a network."""

import json
from dataclasses import dataclass

from tests.system.bed.machine import Machine

CATALOGUE = {
    "name": "local",
    "owner": {"name": "alice"},
    "plugins": [{"name": "helper", "source": "./helper"}],
}
LISTED = {"mcpServers": {"secretive": {"command": "/usr/bin/true", "args": ["--token", "s3cr3t"]}}}
EXTENSION = {"name": "docs", "version": "1.0.0", **LISTED}
FILES = {
    "shop/.claude-plugin/marketplace.json": CATALOGUE,
    "shop/helper/.claude-plugin/plugin.json": {"name": "helper", "version": "1.0.0"},
    "shop/helper/.mcp.json": LISTED,
    "docs/gemini-extension.json": EXTENSION,
}
# Its output at the start in a folder that is not trusted does not matter here.
_GEMINI = "GEMINI_CLI_TRUST_WORKSPACE=true GEMINI_CLI_NO_RELAUNCH=true gemini"


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """One plugin, the command that installs it, and the setting that turns its server off."""

    agent: str
    id: str
    install: str
    path: str  # of the file with the server
    off: tuple[str, object]  # a person's text, and the file it goes to


CLAUDE_CODE = Plugin(
    agent="claude-code",
    id="helper@local",
    install="claude plugin marketplace add /home/alice/shop && claude plugin install helper@local",
    path="/home/alice/shop/helper/.mcp.json",  # and not in the copy, while there is the folder
    off=(
        "/home/alice/.claude/settings.json",
        {"deniedMcpServers": [{"serverName": "plugin:helper:secretive"}]},
    ),
)
GEMINI = Plugin(
    agent="gemini",
    id="docs",
    install=f"{_GEMINI} extensions install /home/alice/docs --consent",
    path="/home/alice/.gemini/extensions/docs/gemini-extension.json",
    off=("/home/alice/.gemini/settings.json", {"mcp": {"excluded": ["secretive"]}}),
)
PLUGINS = (CLAUDE_CODE, GEMINI)


def put_files(machine: Machine) -> None:
    """Give alice the plugins as their makers have them; nothing is installed."""
    for path, content in FILES.items():
        write(machine, f"/home/alice/{path}", content)


def write(machine: Machine, path: str, content: object) -> None:
    """Write a file as alice."""
    command = f"mkdir -p $(dirname {path}); cat > {path}"
    machine.as_user("alice", command, stdin=json.dumps(content))


def turn_off(machine: Machine, plugin: Plugin) -> None:
    """Follow the output of `mcpwrap clients` about the server of a plugin."""
    path, settings = plugin.off
    assert isinstance(settings, dict)
    file = machine.path(path)
    before = json.loads(file.read_text()) if file.exists() else {}
    write(machine, path, before | settings)
