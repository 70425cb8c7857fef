"""Player of the conversations with common agents, and with the Inspector's command line.

Its arguments: a JSON object of the servers' commands by agent, and the JSON file of conversations.
Each agent gets the server of its conversation in its own file, and a model that calls the tools.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.system.guest.messages.model import Model

Json = dict[str, Any]
HOME = Path.home()
ASK = "Try the tools."
PATIENCE_S = 120


def claude_code(server: str, command: list[str], url: str) -> None:
    config = {"mcpServers": {server: {"command": command[0], "args": command[1:]}}}
    env = {
        "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "ENABLE_TOOL_SEARCH": "false",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }  # fmt: skip
    options = ["--strict-mcp-config", "--dangerously-skip-permissions"]
    run(["claude", "-p", ASK, "--mcp-config", json.dumps(config), *options], env)


def gemini(server: str, command: list[str], url: str) -> None:
    write(
        ".gemini/settings.json",
        security={"auth": {"selectedType": "gemini-api-key"}},
        mcpServers={server: {"command": command[0], "args": command[1:]}},
    )
    env = {
        "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none",
        "GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true",
    }  # fmt: skip
    run(["gemini", "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", ASK], env)


def opencode(server: str, command: list[str], url: str) -> None:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {"none": {"name": "none"}},
    }
    write(
        ".config/opencode/opencode.json",
        mcp={server: {"type": "local", "command": command}},
        provider={"local": provider},
    )
    run(["opencode", "run", "-m", "local/none", "--auto", "--title", ASK, ASK], {})


def write(path: str, **settings: Any) -> None:
    """Write an agent's file."""
    file = HOME / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(settings))


def run(command: list[str], env: dict[str, str]) -> None:
    subprocess.run(
        command, env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=sys.stderr,
        timeout=PATIENCE_S, check=True,
    )  # fmt: skip


def inspect(server: str, command: list[str], steps: list[list[Any]]) -> None:
    """Send the request of each step by the Inspector, which has a session for each."""
    entry = {"command": command[0], "args": command[1:]}
    write("inspected.json", mcpServers={server: entry})
    cli = ["mcp-inspector", "--cli", "--config", str(HOME / "inspected.json"), "--server", server]
    for step in steps:
        subprocess.run([*cli, *inspector_options(step)], stdout=sys.stderr, timeout=PATIENCE_S)


def inspector_options(step: list[Any]) -> list[str]:
    match step:
        case ["tool", name, arguments]:
            named = ["--method", "tools/call", "--tool-name", name]
            return [*named, *(f"--tool-arg={key}={value}" for key, value in arguments.items())]
        case ["prompt", name, arguments]:
            named = ["--method", "prompts/get", "--prompt-name", name]
            return [*named, *(f"--prompt-args={key}={value}" for key, value in arguments.items())]
        case ["resource", uri]:
            return ["--method", "resources/read", "--uri", uri]
        case ["level", level]:
            return ["--method", "logging/setLevel", "--log-level", level]
        case _:
            return ["--method", step[0]]


AGENTS: dict[str, Callable[[str, list[str], str], None]] = {
    "claude-code": claude_code, "gemini": gemini, "opencode": opencode
}  # fmt: skip


def main(commands: dict[str, dict[str, list[str]]], conversations: list[Json]) -> None:
    for each in conversations:
        server, steps = each["server"], each["steps"]
        for name in each["clients"]:
            if name == "inspector":
                inspect(server, commands[name][server], steps)
            elif name in AGENTS:
                calls = [(tool, given) for _, tool, given in steps]
                with Model(server, calls) as model:
                    threading.Thread(target=model.serve_forever, daemon=True).start()
                    AGENTS[name](server, commands[name][server], model.url)
                    model.shutdown()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()))
