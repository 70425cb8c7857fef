"""The files of all agents that are known, on one machine: wrapped by root's consent, and back."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpwrap.config.agent_files.table import BY_ID
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.wrapping import ANSWERS, HOME, UNWRAPS, add_alice
from tests.unit.config.agent_files.files import FIXTURES

# Beside the tests of this file a layer is made, the first time.
pytestmark = pytest.mark.timeout(600)

FILES = {
    path.stem: BY_ID[path.stem].files[0].place({"HOME": HOME}) for path in FIXTURES
}  # by agent


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """Boot a machine on which alice has every agent, and sudo."""
    machine = installed.agents_machine("trixie")
    try:
        add_alice(machine)
        machine.write("/etc/npmrc", "registry=https://npm.good.test/\n")
        machine.write("/etc/pip.conf", "[global]\nindex-url = https://pypi.good.test/simple/\n")
        machine.as_user("alice", "echo FROM_FILE=s3cr3t > ~/.env")  # which Cursor's names
        for fixture in FIXTURES:
            file = FILES[fixture.stem]
            machine.as_user("alice", f"mkdir -p '{Path(file).parent}'; touch '{file}'")
            machine.path(file).write_bytes(fixture.read_bytes())
        yield machine
        assert machine.unannounced() == []
    finally:
        machine.remove()


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
    assert status == 1  # some are left, and it says why
    assert "s3cr3t" not in shown.replace("/srv/s3cr3t.db", "")  # a name in an argument
    for command in set(re.findall("no value yet: `sudo (mcpwrap secret set [^`]*)`", shown)):
        machine.as_root(command, stdin="n0t-in-the-file")
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
