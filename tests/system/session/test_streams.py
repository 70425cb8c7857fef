"""Long lines, many calls in flight, many sessions: all data arrives, and nothing is left."""

import json
import re

import pytest

from tests.system.bed.machine import Machine
from tests.system.session import machines
from tests.system.support.tiers import only_in_test_all

STAGE = machines.bounded

NAMES = ["echo", "straight", "sealed"]  # by the gate, without it, and with a redactor


@pytest.mark.parametrize("name", NAMES)
def test_a_line_of_64_mib_passes(machine: Machine, name: str) -> None:
    assert machine.call("echo_agent", "sends_the_longest_line", name, user="alice")


def test_a_longer_line_ends_the_session(machine: Machine) -> None:
    send = machine.guest_command("echo_agent", "send_too_long_a_line", "echo")
    done = machine.as_user("alice", send)
    assert "mcpwrap-connect: a line of over 67108865 bytes" in done.err
    assert json.loads(done.out) == [[], 76]
    machine.await_end_of("echo")


@pytest.mark.parametrize("name", NAMES)
def test_much_in_flight_both_ways_does_not_stall(machine: Machine, name: str) -> None:
    assert machine.call("echo_agent", "sends_many_in_flight", name, user="alice")


# One process waits for the next session, in a place and under an id that change.
WAITING = r"(\b[0-9]+/)?s-[0-9a-f]{16}"


def traces(machine: Machine, name: str) -> dict[str, str]:
    """Return everything that a session could leave behind, counted or named."""
    gate = machine.show("mcpwrap-gate.service", "MainPID")["MainPID"]
    unit = f"mcpwrap@{name}.service"
    shown = machine.show(unit, "MainPID", "ControlGroup")
    pid, group = shown["MainPID"], shown["ControlGroup"]
    look = {
        "descriptors of the gate": f"ls /proc/{gate}/fd | wc -l",
        "descriptors of the wrapper": f"ls /proc/{pid}/fd | wc -l",
        "children of the gate": f"pgrep -P {gate} | wc -l",
        "processes": f"pgrep -u mcpw-{name} | wc -l",
        "control groups": f"ls -d {machine.cgroups}{group}/*/",
        "mounts": f"wc -l < /proc/{pid}/mountinfo",
        "mounts of the machine": "wc -l < /proc/1/mountinfo",
        "files": f"cd /proc/{pid}/root && find run/mcpwrap/rt/*/*/* tmp var/tmp dev/shm",
        "files of the machine": "find /run/mcpwrap /var/lib/mcpwrap /tmp",
    }
    seen = {what: machine.look(command) for what, command in look.items()}
    return {what: re.sub(WAITING, "N/s-ID", text) for what, text in seen.items()}


@only_in_test_all("mutation twin: shows that the count of files notices a missing removal")
def test_the_removal_is_what_leaves_no_file(machine: Machine) -> None:
    go_on = "        for paths, tries in waiting:\n"
    with machine.patched("as_wrapper/session_cleanup", go_on, "        for paths, tries in []:\n"):
        machine.call("echo_agent", "sessions_in_a_row", "echo", 2, user="alice")
        machine.await_end_of("echo")
        assert traces(machine, "echo")["files"].count("N/s-ID/home") == 2


# How many in each of the three ways: 500 in all. A fifth of them would show a session's leftovers
# too.
SESSIONS = {"echo": 300, "straight": 100, "sealed": 100}
SHARE = {"bookworm": 1, "trixie": 5}


def nothing_is_left(machine: Machine, name: str, count: int) -> None:
    """Hold this many sessions in a row, and then 16 at once; compare the state after them."""
    machine.call("echo_agent", "sessions_in_a_row", name, 1, user="alice")
    before = settled(machine, name)
    in_a_row = machine.call("echo_agent", "sessions_in_a_row", name, count, user="alice")
    assert in_a_row[0] == count
    print(f"{name}: {count} sessions in {in_a_row[1]:.1f} s")
    at_once = machine.call("echo_agent", "sessions_at_once", name, user="alice")
    assert at_once == [True] * 16
    assert settled(machine, name) == before


def settled(machine: Machine, name: str) -> dict[str, str]:
    """Return the traces when all ending processes have ended."""
    machine.await_end_of(name)
    machines.await_no_place(machine, name)
    machine.await_idle_gate()
    return traces(machine, name)


@pytest.fixture
def alone(machine: Machine) -> Machine:
    """Stop the other wrappers: an idle one that ends would remove its files meanwhile."""
    machine.as_root("systemctl stop 'mcpwrap@*.service'")
    return machine


@only_in_test_all("a flood: `make test` has the same with a few sessions")
def test_after_500_sessions_nothing_is_left(alone: Machine) -> None:
    """In a row; and then 16 at once."""
    for name, in_a_row in SESSIONS.items():
        nothing_is_left(alone, name, in_a_row // SHARE[alone.suite])


@pytest.mark.parametrize("name", NAMES)
def test_after_some_sessions_nothing_is_left(alone: Machine, name: str) -> None:
    """Ten sessions show the leftovers of one."""
    nothing_is_left(alone, name, 10)
