"""mcpwrap from its wheel, on the Python of each Debian: the commands that need no package."""

import json

import pytest

from tests.system.bed import roots
from tests.system.bed.machine import Machine
from tests.system.run import trial as trials
from tests.system.support.tiers import only_in_test_all

STAGE = trials.booted
TESTING = pytest.param(
    roots.TESTING,
    marks=[only_in_test_all("a machine of its own"), pytest.mark.timeout(1800)],  # and its roots
)
RELEASED = [suite for suite in roots.SUITES if suite != roots.TESTING]
pytestmark = pytest.mark.parametrize("suite", [*RELEASED, TESTING], indirect=True)

BIN = "/home/alice/venv/bin"
CONFIG = '[mcp_servers.probe]\ncommand = "/usr/bin/python3"\nargs = ["/opt/probe.py"]\n'
ENTRY = json.dumps({"mcpServers": {"probe": {"command": "python3", "args": ["/opt/probe.py"]}}})


def test_what_needs_no_package_works_on_a_listed_python(machine: Machine) -> None:
    version = machine.as_user("alice", f"{BIN}/python -V").out  # as in "Python 3.13.5\n"
    listed = machine.as_user("alice", f"{BIN}/pip show -v mcpwrap").out
    minor = version.removeprefix("Python ").rpartition(".")[0]
    assert f"  Programming Language :: Python :: {minor}\n" in listed

    with trials.hold(machine) as session:
        assert session.evaluate("import sys; result = sys.version") in (
            machine.as_user("alice", "python3 -c 'import sys; print(sys.version)'").out
        )
    assert ", 0 of them differ\n" in machine.as_user("alice", f"{BIN}/mcpwrap policy test").out

    machine.as_user("alice", "cat > config.toml", stdin=CONFIG)
    printed = machine.as_user("alice", f"{BIN}/mcpwrap convert config.toml --client codex").out
    assert "[mcp_servers.probe]\n" in printed
    try:
        machine.as_user("alice", "mkdir .cursor; cat > .cursor/mcp.json", stdin=ENTRY)
        shown = machine.as_user("alice", f"{BIN}/mcpwrap clients --json", status=1).out
        (file,) = json.loads(shown)["files"]
        assert [(each["name"], each["state"]) for each in file["servers"]] == [("probe", "raw")]
    finally:
        machine.as_root("cd /home/alice && rm -r .cursor config.toml")


def test_pip_refuses_it_on_a_python_that_is_too_old(machine: Machine) -> None:
    # The one command for which pip of each Debian judges the wheel for another Python.
    command = f"{BIN}/pip download --no-deps --only-binary=:all: -d downloaded {trials.WHEEL}"
    said = machine.as_user("alice", f"{command} --python-version 3.10", status=1).err
    assert "'mcpwrap' requires a different Python: 3.10.0 not in '>=3.11'" in said
    machine.as_user("alice", f"{command} --python-version 3.11")
    machine.as_root("rm -r /home/alice/downloaded")
