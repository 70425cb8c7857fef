"""Agents in common use, each with a server of its own, as alice has them; without a network."""

import json
import secrets
from dataclasses import dataclass

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.support.servers import NODE_MODULES

SECRET = f"tok-{secrets.token_hex(16)}"
EVERYTHING = f"{NODE_MODULES}/server-everything/dist/index.js"
MEMORY = f"{NODE_MODULES}/server-memory/dist/index.js"
TIME = "/opt/mcp/pypi/bin/mcp-server-time"
PATIENCE_MS = int(pace.WAIT_S * 1000)  # of agents that have such a setting, with one server
LISTED_S = 1.6 * pace.WAIT_S  # less than the bed waits for a command


@dataclass(frozen=True, kw_only=True)
class Agent:
    """One agent, its file, and its command that lists the health of its servers."""

    name: str  # of a client of `mcpwrap wrap`, but for the Inspector
    file: str
    server: str
    program: str  # a text in the command line of the server, and in no other
    has_secret: bool
    add: str = ""  # its own command; otherwise the file is written by hand:
    text: str = ""
    meanwhile: str = ""  # the command that rewrites its file, with the server `other` besides
    lists: str
    healthy: str  # a line of its output


CLAUDE_CODE = Agent(
    name="claude-code",
    file="/home/alice/.claude.json",
    server="everything",
    program=EVERYTHING,
    has_secret=True,
    add=f"claude mcp add everything -s user -e API_KEY={SECRET} -- /usr/bin/node {EVERYTHING}",
    meanwhile="claude mcp add other -s user -- /usr/bin/true",
    lists=f"MCP_TIMEOUT={PATIENCE_MS} claude mcp list",
    healthy=r"^everything: .* - ✔ Connected$",
)
# It starts servers only in trusted folders; and itself once more, for more memory. It would wait 5
# s for a server: too short on a busy host.
GEMINI = Agent(
    name="gemini",
    file="/home/alice/.gemini/settings.json",
    server="time",
    program=TIME,
    has_secret=False,
    add=f"gemini mcp add -s user --timeout {PATIENCE_MS} time {TIME} -- --local-timezone UTC",
    meanwhile="gemini mcp add -s user other /usr/bin/true",
    lists="GEMINI_CLI_TRUST_WORKSPACE=true GEMINI_CLI_NO_RELAUNCH=true gemini mcp list",
    healthy=r"^✓ time: .* - Connected$",
)
OPENCODE = Agent(
    name="opencode",
    file="/home/alice/.config/opencode/opencode.jsonc",
    server="memory",
    program=MEMORY,
    has_secret=True,
    text=f"""{{
  // Written by hand: `opencode mcp add` asks at a terminal.
  "mcp": {{
    "memory": {{
      "type": "local",
      "command": ["/usr/bin/node", "{MEMORY}"],
      "environment": {{ "API_KEY": "{SECRET}" }}, // to be turned
      "timeout": {PATIENCE_MS},
    }},
  }},
}}
""",
    lists="NO_COLOR=1 opencode mcp list",
    healthy=r"✓ memory .*connected$",
)
# Not an agent that `mcpwrap` knows; its file is like that of most.
INSPECTOR = Agent(
    name="inspector",
    file="/home/alice/inspected.json",
    server="clock",
    program=TIME,
    has_secret=True,
    text=json.dumps(
        {
            "mcpServers": {
                "clock": {
                    "command": TIME,
                    "args": ["--local-timezone", "UTC"],
                    "env": {"API_KEY": SECRET},
                }
            }
        },
        indent=2,
    ),
    lists="mcp-inspector --cli --config inspected.json --server clock --method tools/list",
    healthy=r'^ +"name": "get_current_time",$',
)
AGENTS = (CLAUDE_CODE, GEMINI, OPENCODE, INSPECTOR)


@dataclass(frozen=True)
class Health:
    """Health that an agent reports of its servers, and the processes that ran meanwhile."""

    said: str
    servers: set[tuple[str, bool]]  # the accounts of the processes; whether they had the secret


def health(machine: Machine, agent: Agent) -> Health:
    """Get the health of its servers from an agent of alice."""
    command = f"timeout {LISTED_S} env {agent.lists}"
    watched = ("watcher", "watch", "alice", command, agent.program, SECRET)
    status, said, seen = machine.call(*watched)
    assert status == 0, said
    return Health(said, {(" ".join(names), has_secret) for names, has_secret in seen})


def set_up(machine: Machine, agent: Agent) -> None:
    """Give an agent its server, by its own command if it has one without prompts."""
    if agent.add:
        machine.as_user("alice", agent.add)
    else:
        command = f"umask 077; mkdir -p $(dirname {agent.file}); cat > {agent.file}"
        machine.as_user("alice", command, stdin=agent.text)
