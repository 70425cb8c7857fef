"""The files of all agents that are known, on one machine: wrapped by root's consent, and back."""

import json
import re
from pathlib import Path

import pytest

from mcpwrap.config.agent_files.known_agents import BY_ID
from tests.system.bed.machine import Machine
from tests.system.support.tiers import on_release
from tests.system.wrap import machines
from tests.system.wrap.people import ANSWERS, HOME, UNWRAPS

FIXTURES = sorted((Path(__file__).parents[2] / "shared/agent_files").iterdir())

STAGE = machines.with_agents
# Beside the tests of this file a layer is made, the first time.
pytestmark = on_release("trixie")

FILES = {
    path.stem: BY_ID[path.stem].files[0].place({"HOME": HOME}) for path in FIXTURES
}  # by agent


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Lend a machine on which alice has a file of every agent."""
    machines.anew(machine)
    machine.write("/etc/npmrc", "registry=https://npm.good.test/\n")
    machine.write("/etc/pip.conf", "[global]\nindex-url = https://pypi.good.test/simple/\n")
    files = " ".join(f"'{file}'" for file in FILES.values())
    make = f'for file in {files}; do mkdir -p "$(dirname "$file")"; touch "$file"; done'
    machine.as_user("alice", f"{make}; echo FROM_FILE=s3cr3t > ~/.env")  # which Cursor's names
    for fixture in FIXTURES:
        machine.path(FILES[fixture.stem]).write_bytes(fixture.read_bytes())
    return machine


def contents(machine: Machine) -> dict[str, bytes]:
    return {agent: machine.path(file).read_bytes() for agent, file in FILES.items()}


def states(machine: Machine) -> dict[str, dict[str, str]]:
    """Return the state of each server of each agent, as `mcpwrap clients` has it."""
    shown = machine.as_user("alice", "mcpwrap clients --json || true").out
    by_path = {row["path"]: row["servers"] for row in json.loads(shown)["files"]}
    return {
        agent: {server["name"]: server["state"] for server in by_path[file]}
        for agent, file in FILES.items()
    }


def test_all_agents_there_and_back(machine: Machine) -> None:
    before, raw = contents(machine), states(machine)
    status, shown = machine.typed("mcpwrap wrap --all", ANSWERS)
    assert status == 1  # some are left, and the output has the reason
    assert "s3cr3t" not in shown.replace("/srv/s3cr3t.db", "")  # a name in an argument
    missing = sorted(set(re.findall("no value yet: `sudo (mcpwrap secret set [^`]*)`", shown)))
    machine.as_root("".join(f"printf n0t-in-the-file | {line} || exit\n" for line in missing))
    status, shown = machine.typed("mcpwrap wrap --all", ANSWERS)
    wrapped, after = contents(machine), states(machine)
    for agent, servers in raw.items():
        became = [name for name in servers if after[agent][name] == "wrapped"]
        stayed = [name for name in servers if after[agent][name] == servers[name]]
        print(f"{agent}: wrapped {became}, left {stayed}")
        assert became
        assert sorted([*became, *stayed]) == sorted(servers)
        assert all(f"left as it is: {name} " in shown for name in stayed)
    assert machine.typed("mcpwrap wrap --all", ANSWERS)[0] == 1
    assert contents(machine) == wrapped
    assert machine.typed("mcpwrap unwrap --all", UNWRAPS)[0] == 0
    assert contents(machine) == before
