"""Real agents in one project after the other: their server sees the one that they are in."""

import pytest

from tests.system.bed.machine import Machine
from tests.system.support.coding_agents import (
    CLAUDE_CODE,
    CODEX,
    OPENCODE,
    CodingAgent,
    Entry,
    answered,
    model,
)
from tests.system.support.servers import NODE_MODULES
from tests.system.support.tiers import on_release, only_in_test_all
from tests.system.wrap import machines

STAGE = machines.with_agents
pytestmark = on_release("trixie")  # its Node is new enough for the agents

SRC = "/home/alice/src"
FILES = f"""
[mcp_servers.files]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-filesystem/dist/index.js", "${{PROJECT}}"]
[mcp_servers.files.mcpwrap]
agents = ["alice"]
projects = ["{SRC}:rw"]
"""
LATER = only_in_test_all("one more agent; the fast tier has one, which sends its folder as root")


@pytest.mark.parametrize(
    "agent",
    [CLAUDE_CODE, pytest.param(CODEX, marks=LATER), pytest.param(OPENCODE, marks=LATER)],
    ids=str,
)
def test_an_agent_that_changes_its_project_changes_that_of_its_server(
    machine: Machine, agent: CodingAgent
) -> None:
    machines.anew(machine, groups="mcpwrap")
    make = (
        "umask 022; for p in a b; do mkdir -p src/$p; git init -q src/$p; echo $p > src/$p/is; done"
    )
    machine.as_user("alice", make)
    machine.configure(FILES)
    machine.apply()
    agent.set_up(machine, Entry("files", ["mcpwrap-connect", "files"]))
    for name, other in (("a", "b"), ("b", "a"), ("a", "b")):
        calls = [
            ("list_allowed_directories", {}),
            ("write_file", {"path": f"{SRC}/{name}/made", "content": name}),
            ("read_text_file", {"path": f"{SRC}/{other}/is"}),
        ]
        with model(machine, calls) as told:
            answered(machine, agent, folder=f"src/{name}")
        allowed, written, refused = told.results()
        assert f"{SRC}/{name}" in allowed
        assert f"{SRC}/{other}" not in allowed
        assert "Successfully wrote" in written
        assert "denied" in refused
    assert (
        machine.as_user("alice", "stat -c %U src/*/made; cat src/a/made").out == "alice\nalice\na"
    )
