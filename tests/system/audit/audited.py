"""Machine of the audit's stories: a probe for each way to record params, and readers of the log."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.support.servers import a_server

SERVERS = a_server("probe", 'agents = ["alice", "bob"]\naudit = "sealed"')
# Stories call one tool ten thousand times.
POLICY = """
version: 1
default_policy: {disabled: [{rule: limits}]}
rules: [{name: no-drop, tool: drop, action: block}]
"""
AUDIT = "/var/log/mcpwrap/audit"
AS_GATE = "setpriv --reuid=mcpwrap-gate --regid=mcpwrap-gate --clear-groups"


@contextmanager
def booted(suite: str) -> Iterator[Machine]:
    """Boot it, with agents of alice and of bob, who may read the audit."""
    with installed.booted(suite) as machine:
        for person in ("alice", "bob"):
            machine.add_person(person, groups="mcpwrap,adm")
        machine.write("/etc/mcpwrap/policy.yaml", POLICY)
        machine.configure(SERVERS)
        machine.apply()
        machine.as_root("systemctl reload mcpwrap-gate")
        yield machine


def last_run(machine: Machine) -> str:
    """Return the folder of the last run of the gate, inside the machine."""
    return f"{AUDIT}/{max(path.name for path in machine.path(AUDIT).glob('0*'))}"


def last_file(machine: Machine) -> str:
    """Return the file that was last written among all sessions."""
    files = machine.path(AUDIT).glob("*/[0-9]*.jsonl")
    last = max(files, key=lambda path: path.stat().st_mtime_ns)
    return f"{AUDIT}/{last.parent.name}/{last.name}"


def names(folder: Path) -> set[str]:
    """Return the paths of all entries of a folder of the host, relative to it."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def verified(machine: Machine, status: int = 0) -> dict[str, Any]:
    """Return the findings of `mcpwrap audit verify`; it must end with `status`."""
    out = machine.look(f"mcpwrap audit verify --json; test $? = {status}")
    found: dict[str, Any] = json.loads(out)
    return found


def await_event(machine: Machine, run: str, *words: str) -> None:
    """Wait until the run's list of sessions has a line with all of these words."""
    master = machine.path(f"{run}/master.jsonl")
    give_up_at_s = time.monotonic() + pace.WAIT_S
    while not any(all(w in line for w in words) for line in master.read_text().splitlines()):
        assert time.monotonic() < give_up_at_s, words
        time.sleep(0.02)
