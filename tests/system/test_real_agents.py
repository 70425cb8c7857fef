"""Real agents find their servers healthy: raw, wrapped, and raw again."""

import json
import re
from collections.abc import Iterator

import pytest

from mcpwrap.config.agent_files.launch import Stdio
from mcpwrap.config.agent_files.opened import Listed, Opened, open_file, servers
from mcpwrap.config.agent_files.rewrite import put_back, rewritten, wrapping
from mcpwrap.config.agent_files.table import BY_ID
from mcpwrap.config.agent_files.words import Stub
from tests.system import real_agents
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.real_agents import AGENTS, CLAUDE_CODE, GEMINI, SECRET, Agent

# Beside the tests of this file a layer is made, the first time.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def agents_machine() -> Iterator[Machine]:
    """Boot a machine with the agents, of the release whose Node is new enough for them."""
    machine = installed.agents_machine("trixie")
    try:
        machine.add_person("alice", groups="mcpwrap")
        machine.configure("")
        yield machine
        assert machine.unannounced() == []
    finally:
        machine.remove()


def opened(agent: Agent, content: bytes) -> tuple[Opened, list[Listed]]:
    known = BY_ID[agent.id or "claude-code"]
    file = open_file(agent.file, known.files[0].language, content)
    return file, servers(file, known.files[0].at, known.words)


def wrap(machine: Machine, agent: Agent) -> None:
    """Do by hand what `mcpwrap wrap` does."""
    path, words = machine.path(agent.file), BY_ID[agent.id or "claude-code"].words
    file, listed = opened(agent, path.read_bytes())
    machine.write(f"/etc/mcpwrap/conf.d/{agent.server}.toml", definition(listed[0]))
    machine.apply()
    if agent.has_secret:
        machine.as_root(f"mcpwrap secret set {agent.server} API_KEY", stdin=SECRET)
    path.write_bytes(rewritten(file, [wrapping(words, listed[0], Stub(agent.server))]))


def unwrap(machine: Machine, agent: Agent, before: bytes) -> None:
    """Do by hand what `mcpwrap unwrap` does."""
    path, words = machine.path(agent.file), BY_ID[agent.id or "claude-code"].words
    (file, now), (earlier, then) = opened(agent, path.read_bytes()), opened(agent, before)
    path.write_bytes(put_back(file, earlier, [(now[0], then[0])], words))


def definition(listed: Listed) -> str:
    """Return the entry as a server of ours."""
    launch = listed.launch
    assert isinstance(launch, Stdio)
    text = f"[mcp_servers.{listed.entry.name}]\ncommand = '{launch.command}'\n"
    text += f"args = {list(launch.args)}\n"
    env = ", ".join(f"{key} = '${{{key}}}'" for key in launch.env)
    return f"{text}env = {{ {env} }}\n[mcp_servers.{listed.entry.name}.mcpwrap]\nagents=['alice']"


def assert_healthy(machine: Machine, agent: Agent, account: str) -> None:
    """See that an agent finds its server healthy, and that this account runs it meanwhile."""
    found = real_agents.health(machine, agent)
    assert re.search(agent.healthy, found.said, re.MULTILINE), found.said
    assert found.servers == {(account, agent.has_secret)}


def name_of(agent: Agent) -> str:
    return agent.id or "inspector"


@pytest.mark.parametrize("agent", AGENTS, ids=name_of)
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

    unwrap(machine, agent, before)
    assert machine.path(agent.file).read_bytes() == before
    assert_healthy(machine, agent, "alice")


@pytest.mark.parametrize("agent", [CLAUDE_CODE, GEMINI], ids=name_of)
def test_what_an_agent_wrote_meanwhile_is_kept(agents_machine: Machine, agent: Agent) -> None:
    machine = agents_machine
    real_agents.set_up(machine, agent)
    before = machine.path(agent.file).read_bytes()
    wrap(machine, agent)
    machine.as_user("alice", agent.meanwhile)
    assert_healthy(machine, agent, f"mcpw-{agent.server}")

    unwrap(machine, agent, before)
    left = json.loads(machine.read(agent.file))
    assert left["mcpServers"].pop("other")["command"] == "/usr/bin/true"
    assert left == json.loads(before)
    assert_healthy(machine, agent, "alice")
