"""Files of pins: damage is found, and neither a full disk nor a killed gate loses anything."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.shared import pace
from tests.system.audit.audited import verified
from tests.system.bed import package
from tests.system.bed.machine import GATE_IS_UP, Machine
from tests.system.pins import machines
from tests.system.pins.machines import (
    PINS,
    POISON,
    a_tool,
    accept,
    called,
    decide,
    first_use,
    is_asked,
    listed,
    opened,
    put,
    question,
    worked,
)
from tests.system.support import attached_strace, small_disk
from tests.system.support.attached_strace import Call
from tests.system.support.tiers import ALL, ON_ONE_RELEASE, only_in_test_all

pytestmark = ON_ONE_RELEASE
STAGE = machines.stored

KNOCK = "mcpwrap-connect {} </dev/null; true"
ACCEPT = "mcpwrap tools accept {} --yes </dev/null"
RESTART = f"{GATE_IS_UP}; systemctl restart mcpwrap-gate"


@pytest.fixture
def machine(machine: Machine) -> Machine:
    machine.announce("mcpwrap")  # of files that are damaged, full disks and killed gates
    return machine


def findings(machine: Machine, status: int) -> str:
    """Return what `mcpwrap audit verify` finds, as one text."""
    return json.dumps(verified(machine, status)["findings"])


def update(machine: Machine, server: str, words: str) -> None:
    """Change a tool of a server, and have alice's agent list it."""
    put(machine, server, [a_tool("one", description=words)])
    with opened(machine, server) as session:
        assert listed(session) == ["change"]
    question(machine, server)


def shows(machine: Machine, server: str) -> list[str]:
    """Return the tools that a new session lists."""
    with opened(machine, server) as session:
        return listed(session)


def test_a_changed_byte_is_found_and_nothing_is_shown(machine: Machine) -> None:
    first_use(machine, "damaged", a_tool("one"))
    assert verified(machine)["findings"] == []
    file = f"{PINS}/damaged.json"
    whole = machine.read(file)
    try:
        machine.replace(file, whole.replace("Return one.", "Return two.", 1))
        refused = machine.as_user("alice", KNOCK.format("damaged")).err
        assert "E-PINS-DAMAGED" in refused
        (command,) = machines.commands_in(refused)
        assert "damaged" in machine.as_root(command, status=1).out
        assert "damaged" in findings(machine, 1)
    finally:
        machine.replace(file, whole)
    assert shows(machine, "damaged") == ["change", "one"]  # the twin
    assert verified(machine)["findings"] == []


def test_an_old_copy_that_is_put_back_is_found(machine: Machine) -> None:
    first_use(machine, "replaced", a_tool("one"))
    file = f"{PINS}/replaced.json"
    old = machine.read(file)
    update(machine, "replaced", POISON)
    accept(machine, "replaced")
    assert verified(machine)["findings"] == []
    new = machine.read(file)
    try:
        machine.replace(file, old)
        assert "replaced" in findings(machine, 1)
        machine.look(f"mv {file} /root/replaced.json")
        assert "replaced" in findings(machine, 1)
    finally:
        machine.look(f"mv -n /root/replaced.json {file}")
        machine.replace(file, new)
    assert verified(machine)["findings"] == []


@only_in_test_all("a machine of its own: what was done is found for ever")
def test_a_gate_that_starts_with_an_old_copy_does_not_hide_it(boot: Callable[..., Machine]) -> None:
    machine = machines.with_server(boot(), "replaced")
    first_use(machine, "replaced", a_tool("one"))
    file = f"{PINS}/replaced.json"
    old = machine.read(file)
    update(machine, "replaced", POISON)
    accept(machine, "replaced")
    new = machine.read(file)
    for content in (old, new):
        machine.replace(file, content)
        machine.as_root(RESTART)
        shows(machine, "replaced")
        assert "replaced" in findings(machine, 1)


def test_a_restart_asks_nothing_again_and_forgets_no_question(machine: Machine) -> None:
    first_use(machine, "restarted", a_tool("one"), a_tool("two"))
    put(machine, "restarted", [a_tool("one", description=POISON), a_tool("two")])
    assert shows(machine, "restarted") == ["change", "two"]
    before = question(machine, "restarted")
    machine.as_root(RESTART)
    assert question(machine, "restarted")["digest"] == before["digest"]  # without any session
    assert shows(machine, "restarted") == ["change", "two"]
    accept(machine, "restarted")
    machine.as_root(RESTART)
    assert shows(machine, "restarted") == ["change", "one", "two"]
    assert not is_asked(machine, "restarted")
    # What is held back may be lost: it is found again.
    put(machine, "restarted", [a_tool("one", description="Another."), a_tool("two")])
    assert shows(machine, "restarted") == ["change", "two"]
    question(machine, "restarted")
    machine.as_root(f"rm {PINS}/restarted.held.json; {RESTART}")
    assert shows(machine, "restarted") == ["change", "two"]
    decide(machine, "restarted", "deny")


@only_in_test_all("of damaged pins; the fast tier has the refusal")
def test_only_root_begins_the_pins_of_a_server_anew(boot: Callable[..., Machine]) -> None:
    machine = machines.with_server(boot(), "reset")
    first_use(machine, "reset", a_tool("one"))
    machine.replace(f"{PINS}/reset.json", "damaged\n")
    machine.as_user("bob", "mcpwrap tools reset reset --yes", status=2)
    assert "E-PINS-DAMAGED" in machine.as_user("alice", KNOCK.format("reset")).err
    machine.as_root("mcpwrap tools reset reset --yes")
    first_use(machine, "reset", a_tool("two"))
    update(machine, "reset", POISON)
    decide(machine, "reset", "deny")


@only_in_test_all("installs the package once more; the fast tier restarts the gate")
def test_an_upgrade_asks_nothing_again(boot: Callable[..., Machine]) -> None:
    machine = machines.with_server(boot(), "upgraded")
    first_use(machine, "upgraded", a_tool("one"))
    file = machine.read(f"{PINS}/upgraded.json")
    shutil.copy2(package.build(machine.suite), machine.path("/root/mcpwrap.deb"))
    machine.as_root(f"{GATE_IS_UP}; apt-get install -y --reinstall /root/mcpwrap.deb")
    assert shows(machine, "upgraded") == ["change", "one"]
    assert machine.read(f"{PINS}/upgraded.json") == file
    assert verified(machine)["findings"] == []


# ----------------------------------------------------------------------------- a full disk
@contextmanager
def on_a_small_disk(machine: Machine) -> Iterator[None]:
    """Move the files of pins to a small disk for the time of the block, and back with changes."""
    move = f"systemctl stop mcpwrap-gate; rm -rf /root/pins; cp -a {PINS} /root/pins"
    back = f"systemctl stop mcpwrap-gate; cp -a /root/pins/*.json {PINS}/; {RESTART}"
    with small_disk.under(machine, PINS, "ext4"):
        machine.as_root(RESTART)
        yield
        machine.as_root(move)
    machine.as_root(back)


def test_on_a_full_disk_nothing_is_accepted_and_nothing_is_lost(machine: Machine) -> None:
    first_use(machine, "full", a_tool("one"))
    update(machine, "full", POISON)
    put(machine, "fresh", [a_tool("one")])
    with on_a_small_disk(machine):
        small_disk.fill(machine, PINS)
        assert shows(machine, "fresh") == []  # its first use cannot be recorded
        refused = machine.as_user("bob", f"{ACCEPT.format('full')}; echo $?")
        assert refused.out.splitlines()[-1] != "0"
        assert "No space left" in refused.err
        question(machine, "full")
        assert shows(machine, "full") == ["change"]
        small_disk.empty(machine, PINS)
        machine.as_user("bob", ACCEPT.format("full"))  # the twin
        assert shows(machine, "full") == ["change", "one"]
        assert shows(machine, "fresh") == ["change", "one"]
    assert shows(machine, "full") == ["change", "one"]
    assert verified(machine)["findings"] == []


# --------------------------------------------------------------------------- a killed gate
KINDS = (
    "openat", "write", "fsync", "fdatasync", "rename,renameat,renameat2", "sendmsg,sendto",
)  # fmt: skip


def test_a_gate_killed_in_mid_acceptance_has_the_old_state_or_the_new(
    machine: Machine, pytestconfig: pytest.Config
) -> None:
    """Killed right before a system call of an acceptance, of the monitor or of its writer."""
    first_use(machine, "killed", a_tool("one"))
    update(machine, "killed", POISON)
    found = attached_strace.calls(machine, gate(machine), KINDS, ACCEPTS)
    assert shows(machine, "killed") == ["change", "one"]
    is_all = pytestconfig.getoption("tier") == ALL
    wanted = found if is_all else [call for call in found if call.kind in KINDS[2:5]]
    assert {call.kind for call in wanted} >= {"rename,renameat,renameat2"}
    for number, call in enumerate(wanted):
        update(machine, "killed", f"{POISON} {number}")
        killed_at(machine, call)


def is_new(machine: Machine) -> bool:
    return shows(machine, "killed") == ["change", "one"]


ACCEPTS = f"runuser -u bob -- {ACCEPT.format('killed')}"


def gate(machine: Machine) -> int:
    return int(machine.show("mcpwrap-gate.service", "MainPID")["MainPID"])


def killed_at(machine: Machine, call: Call) -> None:
    """Kill the gate, or its writer, at a call of an acceptance; the acceptance can be repeated."""
    attached_strace.kill_at(machine, gate(machine), call, f"{ACCEPTS} || true")
    machine.as_root(f"until systemctl is-active --quiet mcpwrap-gate; do :; done; {GATE_IS_UP}")
    assert verified(machine)["findings"] == [], call
    # A new gate completes what the old one has recorded, or asks as before.
    pace.until(lambda: is_new(machine) != is_asked(machine, "killed"))
    machine.as_root(f"{ACCEPTS} || true")
    with opened(machine, "killed") as session:
        assert listed(session) == ["change", "one"]
        assert called(session, "one") == worked("killed")
    assert verified(machine)["findings"] == [], call
    assert not machine.look(f"ls -A {PINS} | grep next || true")


@only_in_test_all("by chance; the story above has each step")
def test_a_gate_killed_at_any_moment_of_twenty_acceptances(machine: Machine) -> None:
    first_use(machine, "chance", a_tool("one"))
    for number in range(20):
        update(machine, "chance", f"{POISON} {number}")
        kill = f"sleep 0.0{number:02}; kill -KILL {gate(machine)}"
        accepts = ACCEPTS.replace("killed", "chance")
        machine.as_root(f"({kill}) & {accepts} || true; wait")
        machine.as_root(f"until systemctl is-active --quiet mcpwrap-gate; do :; done; {GATE_IS_UP}")
        assert verified(machine)["findings"] == []
        machine.as_root(f"{accepts} || true")
        assert shows(machine, "chance") == ["change", "one"]
        pace.until(lambda: not is_asked(machine, "chance"))
