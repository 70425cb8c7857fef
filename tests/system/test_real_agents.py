"""Real agents find their servers healthy: raw, wrapped, and raw again."""

import re
from collections.abc import Iterator

import pytest

from mcpwrap.config.agent_files.launch import Stdio
from mcpwrap.config.agent_files.opened import Listed, open_file, servers
from mcpwrap.config.agent_files.rewrite import rewritten, wrapping
from mcpwrap.config.agent_files.table import BY_ID
from mcpwrap.config.agent_files.words import Stub
from tests.system import real_agents
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.real_agents import AGENTS, SECRET, Agent

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


def wrap(machine: Machine, agent: Agent) -> None:
    """Do by hand what `mcpwrap wrap` does."""
    known = BY_ID[agent.id or "claude-code"]
    path = machine.path(agent.file)
    opened = open_file(agent.file, known.files[0].language, path.read_bytes())
    listed = servers(opened, known.files[0].at, known.words)
    machine.write(f"/etc/mcpwrap/conf.d/{agent.server}.toml", definition(listed[0]))
    machine.apply()
    if agent.has_secret:
        machine.as_root(f"mcpwrap secret set {agent.server} API_KEY", stdin=SECRET)
    path.write_bytes(rewritten(opened, [wrapping(known.words, listed[0], Stub(agent.server))]))


def definition(listed: Listed) -> str:
    """Return the entry as a server of ours."""
    launch = listed.launch
    assert isinstance(launch, Stdio)
    text = f"[mcp_servers.{listed.entry.name}]\ncommand = '{launch.command}'\n"
    text += f"args = {list(launch.args)}\n"
    env = ", ".join(f"{key} = '${{{key}}}'" for key in launch.env)
    return f"{text}env = {{ {env} }}\n[mcp_servers.{listed.entry.name}.mcpwrap]\nagents=['alice']"


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.id or "inspector")
def test_an_agent_finds_its_server_healthy_whoever_runs_it(
    agents_machine: Machine, agent: Agent
) -> None:
    machine = agents_machine
    real_agents.set_up(machine, agent)
    raw = real_agents.health(machine, agent)
    assert re.search(agent.healthy, raw.said, re.MULTILINE), raw.said
    assert raw.servers == {("alice", agent.has_secret)}
    before = machine.path(agent.file).read_bytes()

    wrap(machine, agent)
    assert SECRET not in machine.read(agent.file)
    wrapped = real_agents.health(machine, agent)
    assert re.search(agent.healthy, wrapped.said, re.MULTILINE), wrapped.said
    assert wrapped.servers == {(f"mcpw-{agent.server}", agent.has_secret)}

    machine.path(agent.file).write_bytes(before)
    again = real_agents.health(machine, agent)
    assert re.search(agent.healthy, again.said, re.MULTILINE), again.said
    assert again.servers == {("alice", agent.has_secret)}
