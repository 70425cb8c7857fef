"""`mcpwrap run` asks in the forms of real agents, whose model is a stand-in."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.guest.model_api import FINAL
from tests.system.support import coding_agents
from tests.system.support.coding_agents import (
    CLAUDE_CODE,
    CODEX,
    OPENCODE,
    WORK,
    CodingAgent,
    Entry,
)
from tests.system.support.servers import NODE_MODULES
from tests.system.support.tiers import on_release, only_in_test_all
from tests.system.wrap import machines

STAGE = machines.with_agents
pytestmark = on_release("trixie")

NOTES = f"/home/alice/{WORK}"  # a root of these agents, which the server asks for
PLAN = f"{NOTES}/plan.txt"
POLICY = """version: 1
rules:
  - {name: writes, tool: write_file, action: allow_with_approval}
"""
SERVER = ["/usr/bin/node", f"{NODE_MODULES}/server-filesystem/dist/index.js", NOTES]
RUN = ["/usr/bin/mcpwrap", "run", "--name", "files", "--policy", "/home/alice/asks.yaml"]
ENTRY = Entry("files", [*RUN, "--write", NOTES, "--", *SERVER])
SESSION = "/run/user/$(id -u alice)"  # as of a login; Codex does not pass its variable to servers
APPROVALS = f"XDG_RUNTIME_DIR={SESSION} mcpwrap approvals --user"
LATER = only_in_test_all("the same form in another client, or the other answer")
WRITTEN = f"Successfully wrote to {PLAN}"


@pytest.fixture
def asks(machine: Machine) -> Iterator[Machine]:
    """Lend a machine on which alice has a policy that holds writes."""
    machines.anew(machine)
    machine.write("/home/alice/asks.yaml", POLICY)
    machine.as_root(f"install -d -o alice -m 700 {SESSION}")
    yield machine
    machine.as_root(f"rm -r {SESSION}")
    assert machine.look_by("outliving", "await_end_of_all", "alice", pace.WAIT_S) == []


def writes(content: str) -> list[tuple[str, dict[str, str]]]:
    """Return the one call that the model makes."""
    return [("write_file", {"path": PLAN, "content": content})]


@pytest.mark.parametrize("agent", [CLAUDE_CODE, pytest.param(CODEX, marks=LATER)], ids=str)
def test_a_call_is_approved_in_the_form_of_an_agent_that_draws_it(
    asks: Machine, agent: CodingAgent
) -> None:
    agent.set_up(asks, ENTRY)
    with coding_agents.model(asks, writes("from the form")) as told:
        with coding_agents.opened(asks, agent, columns=80, rows=24) as screen:
            shown = screen.until('"content": "from the form"', f'"path": "{PLAN}"', "write_file")
            assert "mcpwrap asks for your approval (server files" in shown
            agent.approve(screen)
            screen.until(FINAL)
        [result] = told.results()
    assert WRITTEN in result
    assert asks.read(PLAN) == "from the form"


@LATER
@pytest.mark.parametrize("agent", [CLAUDE_CODE, CODEX], ids=str)
def test_a_call_that_is_declined_in_a_form_is_denied(asks: Machine, agent: CodingAgent) -> None:
    agent.set_up(asks, ENTRY)
    with coding_agents.model(asks, writes("no")) as told:
        with coding_agents.opened(asks, agent) as screen:
            screen.until('"content": "no"')
            agent.decline(screen)
            screen.until(FINAL)
        [result] = told.results()
    assert "denied by alice in the agent's own window" in result
    assert asks.look(f"ls {NOTES}") == ""


@pytest.mark.parametrize(
    ("agent", "verdict", "part"),
    [
        pytest.param(CODEX, "approve --yes", WRITTEN, id="codex-approved"),
        pytest.param(CODEX, "deny", "denied by alice (command)", marks=LATER, id="codex-denied"),
        # It declares no forms.
        pytest.param(OPENCODE, "approve --yes", WRITTEN, marks=LATER, id="opencode-approved"),
    ],
)
def test_an_agent_that_shows_no_form_neither_approves_nor_denies(
    asks: Machine, agent: CodingAgent, verdict: str, part: str
) -> None:
    def waiting() -> list[dict[str, Any]]:
        listed = json.loads(asks.as_user("alice", f"{APPROVALS} list --json").out)
        pending: list[dict[str, Any]] = listed["pending"]
        return pending

    agent.set_up(asks, ENTRY)
    with coding_agents.model(asks, writes("by command")) as told, ThreadPoolExecutor() as pool:
        said = pool.submit(coding_agents.answered, asks, agent)
        pace.until(lambda: bool(waiting()))
        [one] = waiting()
        asks.as_user("alice", f"{APPROVALS} {verdict} {one['id']}")
        assert FINAL in said.result()
        [result] = told.results()
    assert part in result
    assert (asks.look(f"ls {NOTES}") == "plan.txt\n") is (part == WRITTEN)
    listed = asks.as_user("alice", "mcpwrap doctor --user --json").out
    forms = {one["what"]: one["found"] for one in json.loads(listed)}
    if agent is CODEX:
        [(client, found)] = forms.items()
        assert client.startswith("approval forms: codex-mcp-client ")
        assert found.startswith("declares forms, and answers them by itself: asked elsewhere")
    else:
        assert forms == {"approval forms": "no client has been asked by one"}


@LATER
def test_what_a_form_does_not_show_whole_is_not_asked_there(asks: Machine) -> None:
    CLAUDE_CODE.set_up(asks, ENTRY)
    asks.write("/home/alice/asks.yaml", POLICY + "approval: {expires: 10s, wait: 1min}\n")
    with coding_agents.model(asks, writes("a line of a long text\n" * 100)) as told:
        with coding_agents.opened(asks, CLAUDE_CODE) as screen:
            shown = screen.until(FINAL)
        [result] = told.results()
    assert "asks for your approval" not in shown
    assert "no approver answered in time" in result
