"""`mcpwrap apply` with many servers: as many commands as with few, and harmless if killed."""

import json
from collections.abc import Callable
from random import Random

import pytest

from tests.system.bed.machine import Machine
from tests.system.support import emptied, kill_at_syscall
from tests.system.support.servers import a_server
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = emptied.booted
MANY, KILLS, SEED = 500, 10, 20_261_125
LATEST_S = 0.2  # into a step
RUNNING = ("load", "make", "listen")  # prefixes of steps that run commands


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Lend the machine without a server of an earlier story."""
    emptied.empty(machine)
    return machine


def servers(count: int) -> str:
    """Return a configuration with this many servers of alice."""
    return "".join(a_server(f"s{number}", 'agents = ["alice"]') for number in range(count))


def commands(machine: Machine, count: int) -> int:
    """Apply this many servers, and return the number of commands that root's program started."""
    machine.configure(servers(count))
    found = kill_at_syscall.calls(machine, "apply")
    return sum(call.kind == kill_at_syscall.FORK for call in found)


def test_more_servers_take_no_more_commands(machine: Machine) -> None:
    """New ones and unchanged ones; each removed one takes a command: userdel(8) has one name."""
    made, looked = commands(machine, 2), commands(machine, 2)
    emptied.empty(machine)
    assert (commands(machine, 8), commands(machine, 8)) == (made, looked)
    machine.as_user("alice", "mcpwrap-connect s7 </dev/null")  # the twin: they are there
    one_leaves, three_leave = commands(machine, 7), commands(machine, 4)
    assert three_leave == one_leaves + 2


def test_a_socket_that_cannot_listen_is_named_and_no_other_waits_for_it(machine: Machine) -> None:
    taken = "/run/mcpwrap/sock/s1.sock"
    machine.as_root(f"mkdir -p {taken}/in-the-way")
    machine.configure(servers(3))
    machine.announce("mcpwrap@s1.socket")
    machine.announce("Failed to listen on mcpwrap@s1.socket")
    assert "mcpwrap@s1.socket" in machine.as_root("mcpwrap apply", status=1).err
    assert listening(machine) == ["mcpwrap@s0.socket", "mcpwrap@s2.socket"]
    machine.as_root(f"rm -r {taken}")
    machine.apply()
    machine.as_user("alice", "mcpwrap-connect s1 </dev/null")  # the twin
    assert machine.apply() == "nothing to do\n"


def listening(machine: Machine) -> list[str]:
    """Return the sockets of servers at which systemd listens."""
    state = "systemctl list-units --plain --no-legend --state=listening,running"
    return [line.split()[0] for line in machine.look(f"{state} 'mcpwrap@*.socket'").splitlines()]


def points(machine: Machine) -> list[tuple[int, float]]:
    """Return steps of its `apply`, each with seconds into it; half of them run commands."""
    planned = json.loads(machine.look("mcpwrap plan --json; true"))["steps"]
    numbers = range(1, len(planned) - 2)  # it is killed before it ends
    running = [number for number in numbers if planned[number - 1].startswith(RUNNING)]
    random = Random(SEED)
    chosen = random.sample(numbers, KILLS // 2) + random.sample(running, KILLS // 2)
    return [(step, random.uniform(0, LATEST_S)) for step in chosen]


@ON_ONE_RELEASE
@only_in_test_all("ten machines with 500 servers each; test_apply.py has few servers and no luck")
@pytest.mark.parametrize("kill", range(KILLS))
def test_killed_anywhere_with_many_servers_no_account_is_outside_the_rules(
    boot: Callable[..., Machine], kill: int
) -> None:
    """Killed with its commands, such as systemctl between two of its units."""
    machine = boot()
    machine.configure(servers(MANY))
    step, after_s = points(machine)[kill]
    broken_off = machine.call("apply_watched", "killed", step, after_s)
    print(f"seed {SEED}, kill {kill}: {after_s:.2f} s into step {step}: {broken_off}")
    assert (broken_off["is_killed"], broken_off["outside"]) == (True, [])
    whole = machine.call("apply_watched", "completed")
    print(f"the next run: {whole}")
    assert (whole["said"], whole["outside"]) == ("done", [])
    assert whole["looks"] > 1
    seen = machine.look_by("apply_state", "seen")
    names = {f"s{number}" for number in range(MANY)}
    assert seen["accounts"].keys() == seen["guests"].keys() == names
    assert set(seen["refused"]) == set(seen["accounts"].values())
    assert machine.apply() == "nothing to do\n"
    assert len(listening(machine)) == MANY
    machine.as_user("alice", f"mcpwrap-connect {Random(kill).choice(sorted(names))} </dev/null")
