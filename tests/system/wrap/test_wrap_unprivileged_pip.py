"""`mcpwrap wrap --unprivileged` with mcpwrap from pip, on a machine without the package."""

import json

from tests.system.bed.machine import Machine
from tests.system.run import trial as trials
from tests.system.support.servers import NODE_MODULES
from tests.system.support.tiers import ON_ONE_RELEASE

STAGE = trials.booted
# Beside the tests of this file a layer is made, the first time.
pytestmark = ON_ONE_RELEASE

FILE = "/home/alice/.cursor/mcp.json"
MCPWRAP = "/home/alice/venv/bin/mcpwrap"
FILESYSTEM = [f"{NODE_MODULES}/server-filesystem/dist/index.js", "/home/alice/notes"]
ENTRY = {"command": "node", "args": FILESYSTEM}
CALL = "--method tools/call --tool-name read_text_file --tool-arg path=/home/alice/notes/n"
INSPECT = f"npx @modelcontextprotocol/inspector --cli --config {FILE} --server notes {CALL}"


def test_an_agent_uses_the_mcpwrap_of_a_person(machine: Machine) -> None:
    text = json.dumps({"mcpServers": {"notes": ENTRY}}, indent=2)
    machine.as_user("alice", f"mkdir -p .cursor; cat > {FILE}", stdin=text)
    try:
        wrap = f"{MCPWRAP} wrap --unprivileged cursor --yes"
        machine.as_user("alice", "chmod o+w venv/bin")
        refused = machine.as_user("alice", wrap, status=2).err
        assert "venv/bin has mode 0757: every account can write to it" in refused
        assert machine.read(FILE) == text
        machine.as_user("alice", "chmod o-w venv/bin")

        machine.as_user("alice", wrap)
        entry = json.loads(machine.read(FILE))["mcpServers"]["notes"]
        given = ["--write", "/home/alice/notes"]
        line = ["run", "--name", "notes", *given, "--", "node", *FILESYSTEM]
        assert entry == {"command": MCPWRAP, "args": line}
        command = f"cd /opt/trial && PATH=/opt/trial/bin:$PATH {INSPECT}"
        assert "KEY" in machine.as_user("alice", command).out
        shown = machine.as_user("alice", f"{MCPWRAP} clients").out
        assert "notes, confined without root" in shown
        assert "notes" in machine.look("ls /home/alice/.local/state/mcpwrap/home").split()

        machine.as_user("alice", f"{MCPWRAP} unwrap cursor --yes")
        assert machine.read(FILE) == text
    finally:
        machine.as_root("cd /home/alice && chmod o-w venv/bin; rm -rf .cursor .local/state/mcpwrap")
