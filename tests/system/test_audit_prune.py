"""Keeping the audit for so long: what is old goes, what is left is proven, and nothing else may go.

On one release: nothing here depends on which.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.bed.session import PROBE

SERVERS = """
[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.probe.mcpwrap]
agents = ["alice"]
"""
AUDIT = "/var/log/mcpwrap/audit"
UNIT = "mcpwrap-audit-prune.service"
# As mcpwrap(8) has it.
DROP_IN = f"/etc/systemd/system/{UNIT}.d/keep.conf"
KEEP_NOTHING = "[Service]\nExecStart=\nExecStart=/usr/bin/mcpwrap audit prune --keep 0d\n"
NEXT_SECOND = "sleep 1.1"  # what was over in this one is no older than 0 d
PRUNE = f"{NEXT_SECOND}; mcpwrap audit prune --keep 0d"
AS_GATE = "setpriv --reuid=mcpwrap-gate --regid=mcpwrap-gate --clear-groups"


@pytest.fixture(scope="module")
def booted() -> Iterator[Machine]:
    machine = installed.installed_machine("bookworm")
    try:
        machine.add_person("alice", groups="mcpwrap")
        machine.write("/opt/probe.py", PROBE)
        machine.configure(SERVERS)
        machine.apply()
        yield machine
    finally:
        machine.remove()


@pytest.fixture
def machine(booted: Machine) -> Iterator[Machine]:
    yield booted
    assert booted.unannounced() == []


def ask(machine: Machine) -> str:
    """Have a session of three records, that is over when this returns; return its file."""
    with machine.session("probe") as session:
        for n in range(3):
            session.evaluate(f"result = {n}")
        file = machine.as_root(f"ls -t {AUDIT}/*/[0-9]*.jsonl | head -1").out.strip()
    name = file.rpartition("/")[2].removesuffix("-1.jsonl")
    closed = f"""grep -q '"closed".*"session":"[0-9]*-{name}"' {run_of(machine)}/master.jsonl"""
    machine.as_root(f"until {closed}; do sleep 0.1; done")
    return file


def run_of(machine: Machine) -> str:
    """Return the folder of the run of the gate that goes on."""
    return machine.as_root(f"ls -d {AUDIT}/0* | tail -1").out.strip()


def files(machine: Machine) -> set[str]:
    return set(machine.as_root(f"find {AUDIT} -mindepth 1").out.split())


def verified(machine: Machine, status: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        machine.as_root("mcpwrap audit verify --json", status=status).out
    )
    return found


def test_what_is_over_goes_and_what_is_open_goes_on(machine: Machine) -> None:
    first = ask(machine)
    with machine.session("probe") as session:
        session.evaluate("result = 1")
        open_file = machine.as_root(f"ls -t {AUDIT}/*/[0-9]*.jsonl | head -1").out.strip()
        second = ask(machine)
        before = files(machine)
        assert {first, open_file, second} < before
        dry = machine.as_root(f"{PRUNE} --dry-run").out
        assert re.fullmatch(r"would remove \d+ files, 0\.0 MB, of sessions that .*\n", dry)
        assert "nothing to remove" in machine.as_root("mcpwrap audit prune --keep 1d").out
        assert files(machine) == before
        done = machine.as_root(PRUNE).out
        assert done.partition(" before ")[0] == dry.partition(" before ")[0].replace(
            "would remove", "removed"
        )
        run = run_of(machine)
        assert files(machine) == {run, f"{run}/master.jsonl", open_file}
        assert (verified(machine)["findings"], verified(machine)["records"]) == ([], 1)
        session.evaluate("result = 2")
        after = verified(machine)
        assert (after["findings"], after["runs"], after["records"]) == ([], 1, 2)
    machine.await_idle_gate()
    assert verified(machine)["findings"] == []
    assert machine.as_root("mcpwrap audit show --json | wc -l").out == "2\n"


def test_what_is_younger_may_not_go(machine: Machine) -> None:
    ask(machine)
    machine.as_root(PRUNE)
    file = ask(machine)
    machine.as_root(f"mv {file} /root/kept")
    missing = [found["what"] for found in verified(machine, status=1)["findings"]]
    assert missing == ["is missing; it had 3 records or more"]
    machine.as_root(f"mv /root/kept {file}")
    assert verified(machine)["findings"] == []


def test_of_an_audit_that_was_changed_nothing_goes(machine: Machine) -> None:
    old, changed = ask(machine), ask(machine)
    machine.as_root(f"cp -a {changed} /root/copy; {AS_GATE} sed -i 2d {changed}")
    before = files(machine)
    said = machine.as_root(PRUNE, status=1).err
    assert "somebody has changed it: 1 finding; nothing was removed" in said
    machine.announce(UNIT)
    machine.announce("mcpwrap.*somebody has changed it")
    machine.as_root(f"systemctl start {UNIT}", status=1)
    assert files(machine) == before
    machine.as_root(f"cat /root/copy > {changed}; systemctl reset-failed {UNIT}")
    machine.as_root(PRUNE)
    assert not files(machine) & {old, changed}


def test_the_timer_is_enabled_and_the_unit_removes_what_it_is_told(machine: Machine) -> None:
    ask(machine)
    timer = machine.show("mcpwrap-audit-prune.timer", "UnitFileState", "ActiveState")
    assert timer == {"UnitFileState": "enabled", "ActiveState": "active"}
    before = files(machine)
    machine.as_root(f"systemctl start {UNIT}")
    said = [entry["MESSAGE"] for entry in machine.journal("-u", UNIT)]
    assert any(text.startswith("nothing to remove: no session was over") for text in said)
    assert files(machine) == before
    machine.as_root("systemctl restart mcpwrap-gate")  # the run that was is over as a whole
    ask(machine)
    machine.write(DROP_IN, KEEP_NOTHING)
    machine.as_root(f"systemctl daemon-reload; {NEXT_SECOND}; systemctl start {UNIT}")
    run = run_of(machine)
    assert files(machine) == {run, f"{run}/master.jsonl"}
    assert verified(machine)["findings"] == []
    said = [entry["MESSAGE"] for entry in machine.journal("-u", UNIT)]
    assert any(text.startswith("removed ") for text in said)
    machine.as_root(f"rm {DROP_IN}; systemctl daemon-reload")


def test_the_gates_account_cannot_have_root_remove_what_is_elsewhere(machine: Machine) -> None:
    """Root's own program, as if all had been found to be old, with a link in its way."""
    file = ask(machine)
    machine.as_root("systemctl restart mcpwrap-gate")
    run, _, name = file.rpartition("/")
    epoch = run.rpartition("/")[2]
    machine.as_root(f"mkdir /srv/other && touch /srv/other/{name} /srv/other/master.jsonl")
    machine.as_root(f"{AS_GATE} sh -c 'mv {run} {AUDIT}/away && ln -s /srv/other {run}'")
    names = f"{epoch}/{name}\\n{epoch}/master.jsonl"
    remove = f"printf '{names}' | /usr/lib/mcpwrap/mcpwrap-audit remove $(date +%s)"
    assert "0 of 2 files were" in machine.as_root(remove, status=1).err
    assert machine.as_root("ls /srv/other").out.split() == [name, "master.jsonl"]
    assert machine.as_root(f"ls {AUDIT}/away").out.split() == [name, "master.jsonl"]
