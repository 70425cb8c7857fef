"""Real agents find their servers healthy: raw, wrapped, and raw again."""

import hashlib
import json
import re

import pytest

from tests.system.bed.machine import Machine
from tests.system.support.tiers import on_release, only_in_test_all
from tests.system.wrap import machines, real_agents
from tests.system.wrap.people import ANSWERS, HOME, UNWRAPS
from tests.system.wrap.real_agents import (
    AGENTS,
    CLAUDE_CODE,
    GEMINI,
    INSPECTOR,
    MEMORY,
    SECRET,
    Agent,
)

STAGE = machines.with_agents
# Of the release whose Node is new enough for the agents. Beside the tests of this file a layer is
# made, the first time.
pytestmark = on_release("trixie")


@pytest.fixture
def agents_machine(machine: Machine) -> Machine:
    """Lend a machine on which alice has no file of an agent yet."""
    return machines.anew(machine, groups="mcpwrap")


def wrap(machine: Machine, agent: Agent) -> None:
    """Let alice wrap the servers of an agent, and root accept the new ones."""
    client = agent.name
    if agent is INSPECTOR:
        digest = hashlib.sha256(machine.path(agent.file).read_bytes()).hexdigest()
        client = f"cursor --file {agent.file} --sha256 {digest}"  # of the same form
    status, shown = machine.typed(f"mcpwrap wrap {client}", ANSWERS)
    assert status == 0, shown
    assert SECRET not in shown


def unwrap(machine: Machine, agent: Agent) -> None:
    """Let alice unwrap the servers."""
    status, shown = machine.typed(f"mcpwrap unwrap --file {agent.file}", UNWRAPS)
    assert status == 0, shown


def assert_healthy(machine: Machine, agent: Agent, account: str) -> None:
    """Check that an agent finds its server healthy, and that this account runs it meanwhile."""
    found = real_agents.health(machine, agent)
    assert re.search(agent.healthy, found.said, re.MULTILINE), found.said
    assert found.servers == {(account, agent.has_secret)}


def name_of(agent: Agent) -> str:
    return agent.name


LATER = only_in_test_all("one more agent; the fast tier has two, which write their own files")
ROWS = [
    pytest.param(agent, marks=() if agent in (CLAUDE_CODE, GEMINI) else LATER) for agent in AGENTS
]


@pytest.mark.parametrize("agent", ROWS, ids=name_of)
def test_an_agent_finds_its_server_healthy_whoever_runs_it(
    agents_machine: Machine, agent: Agent
) -> None:
    machine = agents_machine
    real_agents.set_up(machine, agent)
    assert_healthy(machine, agent, "alice")
    before = machine.path(agent.file).read_bytes()  # opencode has put a line into it

    wrap(machine, agent)
    assert SECRET not in machine.read(agent.file)
    assert_healthy(machine, agent, f"mcpw-{agent.server}")

    unwrap(machine, agent)
    assert machine.path(agent.file).read_bytes() == before
    assert_healthy(machine, agent, "alice")


@only_in_test_all("second-order: files that change between wrapping and unwrapping")
@pytest.mark.parametrize("agent", [CLAUDE_CODE, GEMINI], ids=name_of)
def test_what_an_agent_wrote_meanwhile_is_kept(agents_machine: Machine, agent: Agent) -> None:
    machine = agents_machine
    real_agents.set_up(machine, agent)
    before = machine.path(agent.file).read_bytes()
    wrap(machine, agent)
    machine.as_user("alice", agent.meanwhile)
    assert_healthy(machine, agent, f"mcpw-{agent.server}")

    unwrap(machine, agent)
    left = json.loads(machine.read(agent.file))
    assert left["mcpServers"].pop("other")["command"] == "/usr/bin/true"
    assert left == json.loads(before)


@only_in_test_all("the twin of the bed: what the stories look for is not found when nothing runs")
def test_an_agent_says_so_when_its_server_is_not_there(agents_machine: Machine) -> None:
    """The twin: the searched process would not be found, if nothing ran."""
    machine = agents_machine
    real_agents.set_up(machine, CLAUDE_CODE)
    wrap(machine, CLAUDE_CODE)
    machine.as_root("systemctl stop mcpwrap-gate.socket mcpwrap-gate.service")
    try:
        found = real_agents.health(machine, CLAUDE_CODE)
    finally:
        machine.as_root("systemctl start mcpwrap-gate.socket")
    assert not re.search(CLAUDE_CODE.healthy, found.said, re.MULTILINE)
    assert found.servers == set()


FOLDER = f"{HOME}/knowledge"
MEMORY_ENTRY = {
    "command": "/usr/bin/node",
    "args": [MEMORY],
    "env": {"MEMORY_FILE_PATH": f"{FOLDER}/memory.json"},
}
KNOWN: dict[str, object] = {"name": "old", "entityType": "x", "observations": []}
LEARNT: dict[str, object] = {**KNOWN, "name": "new"}
DEFINITION = "/etc/mcpwrap/conf.d/memory.toml"


def doctor_says(machine: Machine, path: str) -> tuple[str, str]:
    """Return the doctor's findings about writing to a workspace of the server."""
    done = machine.as_root("mcpwrap doctor memory --json || true")
    [check] = [c for c in json.loads(done.out) if c["what"] == f"memory: write in {path}"]
    return check["state"], check["found"]


def test_a_server_that_replaces_its_file_saves_it(agents_machine: Machine) -> None:
    """By a temporary file and rename(2), so that access to the file alone would not suffice."""
    machine = agents_machine
    known = json.dumps({"type": "entity", **KNOWN})
    machine.as_user("alice", f"mkdir {FOLDER}; cat > {FOLDER}/memory.json", stdin=known)
    config = json.dumps({"mcpServers": {"memory": MEMORY_ENTRY}})
    machine.as_user("alice", "mkdir .cursor; cat > .cursor/mcp.json", stdin=config)
    status, shown = machine.typed("mcpwrap wrap cursor", ANSWERS)
    assert status == 0, shown
    machine.call_tool("memory", "create_entities", {"entities": [LEARNT]})
    path = f"{FOLDER}/memory.json"
    saved = machine.read(path).splitlines()
    assert [json.loads(line)["name"] for line in saved] == ["old", "new"]
    assert machine.look(f"stat -c '%n %U' {FOLDER}/*") == f"{path} alice\n"
    assert f"it may write all of {FOLDER}, which it needs to save" in shown
    assert doctor_says(machine, FOLDER) == ("good", "worked")

    # With the file alone the server cannot save it. The doctor reports it, and leaves it as it is.
    alone = machine.read(DEFINITION).replace(f"{FOLDER}:rw", f"{path}:rw")
    machine.write(DEFINITION, alone)
    machine.apply()
    before = machine.read(path)
    state, found = doctor_says(machine, path)
    assert state == "warning"
    assert "but not replaced by a new file (Read-only file system)" in found
    assert "EROFS" in machine.call_tool("memory", "create_entities", {"entities": [KNOWN]})
    assert machine.read(path) == before


@only_in_test_all("the same trial as above, with another refusal of the kernel's")
def test_the_doctor_notices_a_workspace_that_is_read_only(agents_machine: Machine) -> None:
    machine = agents_machine
    machine.as_user("alice", f"mkdir {FOLDER}")
    machine.write(
        "/etc/mcpwrap/config.toml",
        f'[mcp_servers.memory]\ncommand = "/usr/bin/node"\nargs = ["{MEMORY}"]\n'
        f'[mcp_servers.memory.mcpwrap]\nagents = ["alice"]\nworkspace = ["{FOLDER}:rw"]\n',
    )
    machine.apply()
    read_only = f"mount --bind {FOLDER} {FOLDER}; mount -o remount,bind,ro {FOLDER}"
    machine.look(read_only)
    try:
        state, found = doctor_says(machine, FOLDER)
        assert (state, found) == (
            "failed",
            "the server cannot write there (Read-only file system) [E-DOCTOR-WORKSPACE]",
        )
    finally:
        machine.look(f"umount --lazy {FOLDER}; systemctl stop mcpwrap@memory")
    assert doctor_says(machine, FOLDER) == ("good", "worked")
    assert machine.look(f"ls -A {FOLDER}") == ""
