"""Entries that need the project that is open: wrapped, their sessions see it and no sibling."""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.bed.machine import Machine
from tests.system.support import emptied
from tests.system.support.tiers import ON_ONE_RELEASE
from tests.system.wrap.people import HOME

STAGE = emptied.booted
pytestmark = ON_ONE_RELEASE

SRC = f"{HOME}/src"
PROBE = {"command": "python3", "args": ["/opt/probe.py", "${workspaceFolder}"]}
OF_PROJECT = {"mcpServers": {"local": {"command": "python3", "args": ["/opt/probe.py", "."]}}}
FOR_ALL = {"mcpServers": {"open": PROBE}, "projects": {f"{SRC}/{name}": {} for name in "ab"}}
SEEN = f"import os, sys; result = [os.getcwd(), os.listdir('{SRC}'), sys.argv[1:]]"
WRAP = "cd src/a; mcpwrap wrap claude-code --yes --sha256 {}"
QUESTION = "Type yes or no: "


@pytest.fixture
def machine(machine: Machine) -> Iterator[Machine]:
    """Lend the machine without servers, on which alice has two projects side by side."""
    emptied.empty(machine)
    machine.as_user("alice", "mkdir -p src/a/.git src/b/.git")
    machine.as_user("alice", "cat > src/a/.mcp.json", stdin=json.dumps(OF_PROJECT))
    machine.as_user("alice", "cat > .claude.json", stdin=json.dumps(FOR_ALL))
    yield machine
    machine.as_user("alice", "rm -rf src .claude.json .local/state/mcpwrap")
    emptied.empty(machine)


def accepted_by_root(machine: Machine, command: str) -> str:
    """Have root type the command at a terminal, and answer `yes`; return what root has read."""
    plan = {"command": command, "given": "", "early": "", "answer": "yes\n", "meanwhile": ""}
    status, shown, _, _ = machine.call("root_terminal", "answer", {**plan, "question": QUESTION})
    assert status == 0, shown
    return str(shown)


def seen(machine: Machine, server: str, folder: str) -> Any:
    """Return a server's folder, what it sees of alice's projects, and its arguments."""
    command = f"cd {folder} && exec mcpwrap-connect {server}"
    with machine.session(server, command=command) as session:
        return session.evaluate(SEEN)


def test_wrapped_entries_see_the_project_that_is_open_and_no_sibling(machine: Machine) -> None:
    """One of a project's file and one for all folders; root has read that they may write it."""
    digest = hashlib.sha256(json.dumps(OF_PROJECT).encode()).hexdigest()
    proposed = machine.as_user("alice", WRAP.format(digest), status=1)
    assert proposed.out.count(f'projects = ["{SRC}:rw"]') == 2
    command = re.search(r"^mcpwrap accept [0-9a-f]{64} \S+$", proposed.err, re.MULTILINE)
    assert command, proposed
    read = accepted_by_root(machine, command[0])
    for name in ("local", "open"):
        assert f"{name} may write the project in '{SRC}' in which its agent starts it" in read
    machine.as_user("alice", WRAP.format(digest))
    for name, args in (("local", ["."]), ("open", None)):
        for project in ("a", "b"):
            folder = f"{SRC}/{project}"
            assert seen(machine, name, folder) == [folder, [project], args or [folder]]
    assert seen(machine, "local", HOME)[1] == []  # where no project is open
