"""Crashes and ends of runs: each caller gets an answer or the cause, and nothing is left."""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.execution import loads
from tests.system.execution.loads import SERVER, Outcome
from tests.system.support.tiers import only_in_test_all

STAGE = loads.busy
SEED = int(os.environ.get("SEED", "22"))
AGENTS, COUNT = 8, 100
# The caller's error for each victim; the first two are results of a run.
ERRORS = {
    "first process": "killed by SIGKILL",
    "supervisor": "the run supervisor was killed, by the code or from outside the run",
    "worker": "[E-WORKER-LOST]",
    "server": "The server ended before it answered: killed by signal 9 (SIGKILL).",
}


def number_of(outcome: Outcome) -> int:
    """Return the number of the run, as `loads.divided` has given it."""
    return int(outcome["call"]) * AGENTS + int(outcome["agent"])


def cause_of(outcome: Outcome) -> str | None:
    """Return the victim that the caller's error names; None for another error."""
    run = outcome.get("run") or {}
    told = [run.get("error") or "", outcome.get("text", ""), outcome["error"]]
    return next(
        (victim for victim, error in ERRORS.items() if any(error in each for each in told)), None
    )


def unexplained(outcome: Outcome, flaws: list[str], done: dict[str, Any]) -> list[str]:
    """Return the flaws of an outcome for which no kill is the cause that it names."""
    begin_s, end_s = begin_of(outcome, done["outcomes"]), outcome["answered_s"]
    during = [kill["victim"] for kill in done["kills"] if begin_s <= kill["at_s"] <= end_s]
    return flaws if cause_of(outcome) not in during else []


def begin_of(outcome: Outcome, outcomes: list[Outcome]) -> float:
    """Return the first time at which a kill can be why a call failed.

    A server that is killed after its answer is missed by the next call of that agent.
    """
    if cause_of(outcome) != "server":
        return float(outcome["sent_s"])
    before = (outcome["agent"], outcome["call"] - 1)
    sent_s = {(each["agent"], each["call"]): each["sent_s"] for each in outcomes}
    begin_s: float = sent_s[before] if before in sent_s else outcome["sent_s"]
    return begin_s


@only_in_test_all("random kills: the table below has each of them once")
def test_each_caller_gets_an_answer_or_the_cause(machine: Machine) -> None:
    """Server, worker, run supervisor and first process are killed at random, each as often."""
    loads.warm_up(machine)
    warm = loads.traces(machine)
    machine.announce(r"mcpwrap-worker\.service")
    kinds = random.Random(SEED).choices(["linger", "compute", "carry"], [3, 1, 1], k=COUNT)
    done = machine.call("run_kills", "under_kills", SERVER, loads.divided(kinds, AGENTS), SEED)
    numbers = [number_of(each) for each in done["outcomes"]]
    assert sorted(numbers) == list(range(COUNT))
    flaws = {
        number: loads.flaws(each, kinds[number], number)
        for number, each in zip(numbers, done["outcomes"], strict=True)
    }
    causes = [cause_of(each) for each in done["outcomes"]]
    victims = [kill["victim"] for kill in done["kills"]]
    for victim in ERRORS:
        print(
            f"{victim}: killed {victims.count(victim)} times, {causes.count(victim)} callers told"
        )
    print(f"seed {SEED}: {causes.count(None)} of {COUNT} answered")
    assert set(victims) == set(ERRORS)
    left = {
        number: found
        for number, each in zip(numbers, done["outcomes"], strict=True)
        if (found := unexplained(each, flaws[number], done))
    }
    assert left == {}, left
    loads.warm_up(machine)
    loads.await_traces(machine, warm)
    loads.expect_empty_slots(machine)


# ------------------------------------------------------------------------------- one end at a time
WRAPPER_STOPPED = "the wrapper was stopped [E-SESSION-WRAPPER-STOPPED]"
KILL = f"kill -KILL $(pgrep -u mcpj-{SERVER}-0,mcpj-{SERVER}-1) || true"


@dataclass(frozen=True)
class End:
    """Bound of the time until a run is gone, and what its caller and that of another run get."""

    within_s: float
    told: str = ""  # the error; "" for a caller that gets none
    ends_all: bool = False


ENDS = {
    "cancelled": End(0.5),
    "closed": End(2.0),
    "agent killed": End(2.0),
    "session killed": End(2.0, ERRORS["server"]),
    "panic": End(2.0, WRAPPER_STOPPED, ends_all=True),
    "worker killed": End(0.5, ERRORS["worker"], ends_all=True),
    "server killed": End(0.5, ERRORS["server"]),
    "supervisor killed": End(2.0, ERRORS["supervisor"]),
    "first process killed": End(2.0, ERRORS["first process"]),
}
FAST = {"cancelled", "supervisor killed"}
SAME = only_in_test_all("the connection of the run closes, as after a cancelled call")


def ended(machine: Machine, cause: str) -> dict[str, Any]:
    """End a run beside another one, and check what both callers get."""
    machine.announce(r"mcpwrap-worker\.service: (Main process exited|Failed with result)")
    end = ENDS[cause]
    done: dict[str, Any] = machine.call(
        "run_ends", "ended_by", SERVER, cause, pace.promised(end.within_s)
    )
    print(f"{cause}: {done['took_s']:.3f} s")
    if end.told:
        assert end.told in error_of(done["victim"])
    if not end.ends_all:
        assert loads.flaws(done["other"], "pause", 1) == []
    return done


def error_of(outcome: Outcome) -> str:
    """Return what the caller was told."""
    run = outcome.get("run") or {}
    return str(run.get("error") or outcome.get("text") or outcome["error"])


@pytest.mark.parametrize(
    "cause", [pytest.param(cause, marks=[SAME] * (cause not in FAST)) for cause in ENDS]
)
def test_a_run_that_is_ended_is_gone_with_all_its_processes(machine: Machine, cause: str) -> None:
    """Its daemon too. A run beside it goes on, and the slot is used again."""
    assert ended(machine, cause)["left"] == []
    loads.warm_up(machine)


@only_in_test_all("mutation twin: shows that the test notices a run that outlives its caller")
def test_without_the_signal_at_a_hang_up_a_run_would_go_on(machine: Machine) -> None:
    with loads.patched(machine, "as_job/main", "    end_with(connection)\n", ""):
        assert ended(machine, "cancelled")["left"] != []
        machine.as_root(KILL)


@only_in_test_all("mutation twin: shows that the test notices processes that are left")
def test_without_the_control_group_a_run_would_outlive_its_supervisor(machine: Machine) -> None:
    with loads.drop_in(machine, "mcpwrap-job@", "KillMode=process"):
        assert ended(machine, "supervisor killed")["left"] != []
        machine.announce("mcpwrap-job@")  # the next start finds them
        machine.as_root(KILL)


# ------------------------------------------------------------------------------- during a load
LIMITS = "cp /root/other.toml /etc/mcpwrap/config.toml; mcpwrap apply"


@dataclass(frozen=True)
class Command:
    """Command of an operator during runs, and the errors that callers may get."""

    command: str
    errors: tuple[str, ...] = ()


COMMANDS = {
    "restart": Command("systemctl restart mcpwrap-worker.service"),
    "socket": Command("systemctl restart mcpwrap-worker.socket", ("[E-WORKER-LOST]",)),
    "panic": Command(
        f"mcpwrap panic {SERVER}; mcpwrap resume {SERVER}", (WRAPPER_STOPPED, "[E-SESSION-PANIC]")
    ),
    "apply": Command(LIMITS, (WRAPPER_STOPPED, ERRORS["supervisor"])),
}


@pytest.fixture
def other_limits(machine: Machine) -> Iterator[None]:
    """Write a configuration with a third slot, and restore the first one."""
    machine.write("/root/other.toml", loads.CONFIG.replace("at_once = 2", "at_once = 3"))
    yield
    machine.configure(loads.CONFIG)
    machine.apply()


@only_in_test_all("loads: the fast tier has no restart in the midst of runs")
@pytest.mark.usefixtures("other_limits")
@pytest.mark.parametrize("name", COMMANDS)
def test_an_operator_s_command_during_runs_costs_no_call_its_answer(
    machine: Machine, name: str
) -> None:
    """A restart of the worker loses no run. Else each call without a result says why not."""
    runs = loads.divided(["linger"] * 40, AGENTS)
    done = machine.call("run_kills", "under_command", SERVER, runs, COMMANDS[name].command, AGENTS)
    failed = [each for each in done if loads.flaws(each, "linger", number_of(each))]
    print(f"{name}: {len(failed)} of {len(done)} calls failed")
    told = [error_of(each) for each in failed]
    errors = COMMANDS[name].errors
    assert [text for text in told if not any(error in text for error in errors)] == []
    machine.configure(loads.CONFIG)
    machine.apply()
    loads.expect_empty_slots(machine)
    loads.warm_up(machine)
