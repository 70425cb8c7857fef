"""Agents in common use with a hub of real servers: each lists and calls the tools of all."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mcpwrap.core.hub.agent_profiles import AGENT_PROFILES, profile_of
from tests.system.bed import installed
from tests.system.bed.internet import Connected
from tests.system.bed.machine import Machine
from tests.system.hub import machines, real_servers
from tests.system.hub.machines import ALICE, HUB, a_hub, a_member, opened
from tests.system.hub.real_servers import MEMBERS, NOON
from tests.system.support.tiers import on_release, only_in_test_all

# Of the release whose Node is new enough for the agents.
pytestmark = [
    on_release("trixie"),
    only_in_test_all("agents take a minute; test_hub_messages.py has the official clients"),
]

CHANGING = "changing"  # a hub of one member, whose tools change
VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")  # for a model
# Tools that are listed only for agents that can sample or elicit, and one that has to be a task.
NOT_FOR_ALL = {
    "trigger-sampling-request", "trigger-elicitation-request", "trigger-url-elicitation",
    "simulate-research-query", "get-roots-list",
}  # fmt: skip
CALLS = [
    (f"{member}__{tool}", given[0])
    for member, (calls, _) in MEMBERS.items()
    for tool, given in calls.items()
    if tool not in NOT_FOR_ALL
]
# Texts that only the members can have sent.
TEXTS = [
    "The sum of 0.1 and 0.2",
    "21:00:00+09:00",
    "This is a simple text response for testing.",
    "größer",
]


@contextmanager
def with_agents(suite: str) -> Iterator[Connected]:
    """Boot a machine with the agents, and the hub of real servers."""
    with installed.agents_machine(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        fickle = a_member("fickle", ours=f"{ALICE}\n{machines.UNPINNED}")
        more = fickle + a_hub(("fickle",), name=CHANGING, ours=ALICE)
        with real_servers.connected(machine, more) as found:
            with opened(machine) as session:
                names = [f"{member}__{next(iter(calls))}" for member, (calls, _) in MEMBERS.items()]
                machines.await_tools(session, *names)
            yield found


STAGE = with_agents


PROFILES = {profile.name: profile for profile in AGENT_PROFILES}
AGENTS = {"claude-code": "Claude Code", "gemini": "Gemini CLI", "opencode": "opencode"}


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_calls_the_tools_of_all_members(machine: Machine, agent: str) -> None:
    """Its model gets them by the names that its profile has."""
    found = used(machine, agent, HUB, CALLS)
    print(agent, len(found["names"]), "tools;", max(map(len, found["names"])), "characters")
    prefix = PROFILES[AGENTS[agent]].prefix.format(hub=HUB)
    assert {prefix + tool for tool, _ in CALLS} <= set(found["names"])
    assert [name for name in found["names"] if not VALID.fullmatch(name)] == []
    assert found["results"] == len(CALLS)
    for text in TEXTS:
        assert text in found["last"]


# The agent is notified of the change while the next call lasts.
CHANGES: list[list[tuple[str, Any]]] = [
    [("fickle__change", {"what": "tools"})],
    [("fickle__progress", {"steps": 1, "pause_s": 6})],
    [("fickle__identity", {})],
]


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_is_as_its_profile_has_it(machine: Machine, agent: str) -> None:
    """Its name, and whether a tool that is added in its session gets to its model."""
    machines.forget(machine, "fickle")
    with opened(machine, CHANGING) as session:  # so that the agent's first list is whole
        machines.await_tools(session, "fickle__echo")
        machines.await_definitions(machine, "alice", "fickle")
    found = used(machine, agent, CHANGING, *CHANGES)
    assert found["results"] == len(CHANGES)
    [client] = re.findall(r'"client": ?"([^"]+)"', found["last"])
    profile = profile_of(client)
    assert profile is not None, client
    assert profile.name == AGENTS[agent]
    new = f"{profile.prefix.format(hub=CHANGING)}fickle__new-1"
    assert new not in found["names"]
    assert (new in found["names at the end"]) == profile.follows_list_changed


def used(machine: Machine, agent: str, hub: str, *rounds: list[tuple[str, Any]]) -> dict[str, Any]:
    """Have an agent of alice make these calls; return what its model got."""
    found: dict[str, Any] = machine.call(
        "hub.agent_calls", "used", agent, hub, *rounds, user="alice"
    )
    return found


def test_the_inspector_shows_and_calls_them(machine: Machine) -> None:
    entry = {"mcpServers": {HUB: {"command": "mcpwrap-connect", "args": [HUB]}}}
    machine.as_user("alice", "cat > inspected.json", stdin=json.dumps(entry))
    inspector = ["mcp-inspector", "--cli", "--config", "inspected.json", "--server", HUB]

    def inspect(*options: str) -> str:
        return machine.as_user("alice", shlex.join([*inspector, "--method", *options])).out

    listed = inspect("tools/list")
    for tool, _ in CALLS:
        assert f'"name": "{tool}"' in listed
    arguments = [f"--tool-arg={name}={value}" for name, value in NOON.items()]
    called = inspect("tools/call", "--tool-name", "time__convert_time", *arguments)
    assert "21:00:00+09:00" in called
