"""Real agents with a stand-in for their model, which tells them to call tools of an MCP server.

The model is at loopback, so that the agents need no network. Machines with them are made by
`tests/system/wrap/machines.py`.

    with model(machine, [("write_file", {"path": "/home/alice/new", "content": "x"})]) as told:
        CLAUDE_CODE.set_up(machine, Entry("files", ["mcpwrap", "run", ...]))
        with opened(machine, CLAUDE_CODE) as screen:
            screen.until("Approve")
            CLAUDE_CODE.approve(screen)
            screen.until(model_api.FINAL)
    assert told.results() == ["Successfully wrote to /home/alice/new"]
"""

# ruff: noqa: RUF001 # characters that these agents show

import json
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.shared import pace
from tests.system.bed.machine import BED_AT, Machine
from tests.system.guest.model_api import MODEL, Json
from tests.system.support.screen import Screen

PORT = 8199  # of the stand-in, at loopback in the machine
API = f"http://127.0.0.1:{PORT}"
UNIT = "stand-in-for-a-model"
RECORD = "/tmp/stand-in.jsonl"
KEY = "no-key-of-a-real-vendor"
PROMPT = "use the tool"
READS_S = 1.0  # a person reads a form first: a faster answer is taken for one of the client
WORK = "work"  # the folder of alice's home in which her agents work
Keys = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Entry:
    """MCP server in the file of an agent."""

    name: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CodingAgent:
    """One agent: its commands, and the keys that answer its form.

    A key is pressed when the text beside it is on the screen: keys of one moment get lost.
    """

    name: str  # of a client of `mcpwrap wrap`
    file: str  # below the home, with the MCP servers
    at_once: str  # prints the last text of the model, and ends
    interactive: str
    idle: str = ""  # on the screen of one that waits for its person
    approving: Keys = ()
    declining: Keys = ()

    def __str__(self) -> str:
        """Return the name, also of a case of a table."""
        return self.name

    def text(self, entry: Entry) -> str:
        """Return the content of its file, with one server."""
        return TEXTS[self.name](entry)

    def set_up(self, machine: Machine, entry: Entry) -> None:
        """Write alice's files of the agent, with one server, whose tools it may call."""
        write = f"mkdir -p {WORK} .claude $(dirname {self.file}); cat > {self.file}"
        machine.as_user("alice", write, stdin=self.text(entry))
        if self.name == CLAUDE_CODE.name:
            allowed = json.dumps({"permissions": {"allow": [f"mcp__{entry.name}"]}})
            machine.as_user("alice", "cat > .claude/settings.json", stdin=allowed)

    def approve(self, screen: Screen) -> None:
        """Answer the form that is open by yes."""
        time.sleep(READS_S)
        screen.press_in_turn(self.approving)

    def decline(self, screen: Screen) -> None:
        """Answer the form that is open by no."""
        time.sleep(READS_S)
        screen.press_in_turn(self.declining)


def _claude_json(entry: Entry) -> str:
    """Return ~/.claude.json of a person who has seen the first dialogs, and trusts the folder."""
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    server = {"command": entry.command[0], "args": entry.command[1:], "env": entry.env}
    whole = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {f"/home/alice/{WORK}": trusted},
        "mcpServers": {entry.name: server},
    }
    return json.dumps(whole, indent=2) + "\n"


def _codex_toml(entry: Entry) -> str:
    """Return ~/.codex/config.toml. Strings of JSON are strings of TOML.

    Without analytics, which end after 5 s without a network; without a daemon, which copies itself
    into the home and would start the servers. Its own question before each call is answered there.
    """
    env = "".join(f"{name} = {json.dumps(value)}\n" for name, value in entry.env.items())
    server = f"mcp_servers.{json.dumps(entry.name)}"
    return f"""model = "{MODEL}"
model_provider = "stand_in"

[model_providers.stand_in]
name = "Stand-in"
base_url = "{API}/v1"
wire_api = "responses"

[analytics]
enabled = false

[features]
daemon_auto_start = false

[projects."/home/alice/{WORK}"]
trust_level = "trusted"

[{server}]
command = {json.dumps(entry.command[0])}
args = {json.dumps(entry.command[1:])}
default_tools_approval_mode = "approve"

[{server}.env]
{env}"""


def _opencode_json(entry: Entry) -> str:
    model = f"{MODEL}/{MODEL}"
    provider = {
        "npm": "@ai-sdk/openai-compatible",  # is within its program
        "options": {"baseURL": f"{API}/v1", "apiKey": KEY},
        "models": {MODEL: {}},
    }
    server = {"type": "local", "command": entry.command, "environment": entry.env}
    whole = {
        "autoupdate": False, "model": model, "small_model": model,
        "provider": {MODEL: provider}, "mcp": {entry.name: server},
    }  # fmt: skip
    return json.dumps(whole, indent=2) + "\n"


TEXTS = {"claude-code": _claude_json, "codex": _codex_toml, "opencode": _opencode_json}
_CLAUDE = f"env ANTHROPIC_BASE_URL={API} ANTHROPIC_API_KEY={KEY} claude"
_CLAUDE += " --permission-mode default"  # of old: its new one has a model judge each call
CLAUDE_CODE = CodingAgent(
    name="claude-code",
    file=".claude.json",
    at_once=f"{_CLAUDE} -p '{PROMPT}'",
    interactive=f"{_CLAUDE} -- '{PROMPT}'",
    idle="for shortcuts",
    approving=(("☐", "Space"), ("☒", "Down"), ("❯ Accept", "Enter")),
    declining=(("☐", "Down"), ("❯ Accept", "Right"), ("❯ Decline", "Enter")),
)
CODEX = CodingAgent(
    name="codex",
    file=".codex/config.toml",
    at_once=f"codex exec --skip-git-repo-check '{PROMPT}'",
    interactive=f"codex '{PROMPT}'",
    idle="Ask Codex to do anything",
    approving=(("1. True", "1"),),  # which also submits
    declining=(("› 2. False", "Enter"),),
)
OPENCODE = CodingAgent(
    name="opencode",
    file=".config/opencode/opencode.json",
    at_once=f"env NO_COLOR=1 OPENCODE_DISABLE_MODELS_FETCH=1 opencode run '{PROMPT}'",
    interactive=f"env OPENCODE_DISABLE_MODELS_FETCH=1 opencode --prompt '{PROMPT}'",
)


# ---------------------------------------------------------------------------- the model
class Model:
    """Record of the stand-in: what agents sent to it."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def turns(self) -> list[Json]:
        """Return the requests in order: `api`, `tools`, `results` so far, and the `answer`."""
        return [json.loads(line) for line in self._machine.read(RECORD).splitlines()]

    def results(self) -> list[str]:
        """Return the results of tools of the last conversation, as the model got them."""
        return max((turn["results"] for turn in self.turns()), key=len)


@contextmanager
def model(machine: Machine, calls: list[tuple[str, Json]]) -> Iterator[Model]:
    """Run the stand-in for the time of the block: in each conversation it makes these calls."""
    serve = [
        *("systemd-run", "--quiet", "--collect", f"--unit={UNIT}", "--service-type=notify"),
        *("--uid=alice", f"--setenv=PYTHONPATH={BED_AT}", "/usr/bin/python3", "-B", "-m"),
        *("tests.system.guest.model_api", str(PORT), RECORD, json.dumps(calls)),
    ]
    machine.as_root(f"rm -f {RECORD}; {shlex.join(serve)}")
    try:
        yield Model(machine)
    finally:
        machine.as_root(f"systemctl stop {UNIT}")


def answered(machine: Machine, agent: CodingAgent, *, status: int = 0, folder: str = WORK) -> str:
    """Have alice start the agent with its prompt; return what it printed in the end."""
    within = f"cd {folder} && timeout {pace.WAIT_S:.0f} {agent.at_once} < /dev/null"
    return machine.as_user("alice", within, status=status).out


@contextmanager
def opened(machine: Machine, agent: CodingAgent, **size: Any) -> Iterator[Screen]:
    """Have alice start the agent at a terminal with its prompt, for the time of the block."""
    with Screen(machine, "alice", f"cd {WORK} && exec {agent.interactive}", **size) as screen:
        yield screen
