"""Limits of a run: one that exceeds them is ended with the reason, and leaves nothing."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.execution import attempts, runs
from tests.system.guest import run_excess
from tests.system.support import python_servers
from tests.system.support.python_servers import LIMITED, RunResult, run_all
from tests.system.support.tiers import LIMITS_OF_RUNS, needs_limits, only_in_test_all

STAGE = python_servers.with_python  # 10 s, 256 MiB, 64 tasks, 256 KiB of output
pytestmark = pytest.mark.usefixtures("alone_on_the_host")

MEMORY, OUTPUT = 256 << 20, 256 << 10
OOM = f"mcpwrap-job@{LIMITED}.*: A process of this unit has been killed by the OOM killer"
SUPERVISOR_BYTES = 32 << 20
SUPERVISOR = "/usr/libexec/mcpwrap/mcpwrap-job"
# The function of guest/run_excess.py and its arguments, the timeout in seconds, the ending, and the
# beginning of the error.
ENDED = {
    "fork bomb": (("fork_bomb",), 2, "timeout", "timeout: 2 s reached"),
    "orphans": (("orphan_bomb",), 2, "timeout", "timeout: 2 s reached"),
    "memory": (("hoard", 10_000), 10, "memory", "memory: 256 MiB reached"),
    "memory in a child": (("hoard_in_child",), 10, "memory", "memory: 256 MiB reached"),
    "memory of no process": (("hoard_in_kernel",), 10, "memory", "memory: 256 MiB reached"),
    "stdout": (("flood", [1], "\n"), 10, "output", "output: 4 MiB reached"),
    "stderr": (("flood", [2], "\n"), 10, "output", "output: 4 MiB reached"),
    "both": (("flood", [1, 2], "\n"), 10, "output", "output: 4 MiB reached"),
    "without newline": (("flood", [1], "x"), 10, "output", "output: 4 MiB reached"),
    "loop": (("loop",), 1, "timeout", "timeout: 1 s reached"),
    "signals": (("ignore_signals",), 1, "timeout", "timeout: 1 s reached"),
    "stopped": (("stop",), 1, "timeout", "timeout: 1 s reached"),
}
QUICK = ("without newline", "loop")
SLOW = tuple(what for what in ENDED if what not in ("memory", *QUICK))
OTHER_WAYS = only_in_test_all("other ways to take too much, in each kind of limit")
OF_MEMORY = needs_limits("MemoryMax= ends it", LIMITS_OF_RUNS)
TWIN = only_in_test_all("permitted twins: take the time of several runs")


def code_of(*call: Any) -> str:
    """Return code that calls a function of guest/run_excess.py, and prints its result."""
    return attempts.calling(run_excess, "with_uid", *call)


def executed(machine: Machine, calls: list[dict[str, Any]]) -> list[RunResult]:
    """Make these calls one after the other in one session of the server for limits."""
    return run_all(machine, calls, server=LIMITED)


def called(machine: Machine, *calls: tuple[Any, ...]) -> Iterator[Any]:
    """Call functions of guest/run_excess.py, one in each run; yield their results."""
    for result in executed(machine, [{"code": code_of(*call)} for call in calls]):
        assert (result.exit_code, result.error) == (0, None), result
        yield json.loads(result.stdout)[0]


def await_no_process(machine: Machine) -> None:
    """Wait until no account of a run slot has a process but supervisors that wait."""
    users = ",".join(f"mcpj-{server}-{slot}" for server in ("python", LIMITED) for slot in range(2))
    look = f"ps -o args= -u {users} | grep -v {SUPERVISOR} || true"
    pace.until(lambda: not machine.look(look))


def expect_limits(result: RunResult, within_s: float) -> None:
    """Check what holds of each run, however it ended."""
    assert len(result.stdout) + len(result.stderr) <= 2 * OUTPUT + 2000  # and the mark of the gap
    assert result.duration_ms < within_s * 1000
    assert (result.peak_memory or 0) <= MEMORY + SUPERVISOR_BYTES


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(QUICK, id="few"),
        pytest.param(("memory",), id="memory", marks=OF_MEMORY),
        pytest.param(SLOW, id="all", marks=OTHER_WAYS),
    ],
)
def test_a_run_that_takes_too_much_is_ended_and_told_why(
    machine: Machine, rows: tuple[str, ...]
) -> None:
    machine.announce(OOM)
    ended = {what: ENDED[what] for what in rows}
    calls = [
        {"code": code_of(*function), "timeout": timeout_s}
        for function, timeout_s, _, _ in ended.values()
    ]
    results = executed(machine, [*calls, {"code": "print('the next one')"}])
    slowness = pace.promised(1.0)
    for (what, row), result in zip(ended.items(), results, strict=False):
        assert (what, result.ending, result.error[: len(row[3])]) == (what, *row[2:]), result
        assert (what, result.killed, result.exit_code) == (what, True, 137)
        assert (what, result.truncated) == (what, row[2] == "output")
        expect_limits(result, (row[1] + 1.5) * slowness)
        print(f"{what}: {result.duration_ms} ms, {result.error}")
    assert results[-1].stdout == "the next one\n"
    await_no_process(machine)


@TWIN
def test_a_run_below_its_limits_is_left_alone(machine: Machine) -> None:
    """The twin: most of what it may have."""
    processes, memory = called(machine, ("start", 50), ("hoard", 180))
    assert (processes, memory) == (51, 180)
    (flooded,) = executed(machine, [{"code": code_of("flood", [1, 2], "\n", 120)}])
    assert (flooded.ending, flooded.truncated, flooded.error) == ("exit", False, None)
    assert len(flooded.stdout) + len(flooded.stderr) > 240 << 10


@OTHER_WAYS
def test_a_run_has_no_more_tasks_than_its_limit(machine: Machine) -> None:
    (processes,) = called(machine, ("start", 200))
    assert processes in runs.TASKS


@OTHER_WAYS
def test_a_run_fills_no_disk(machine: Machine) -> None:
    """Each folder is memory of its own size, and of the run."""
    before = machine.look("df --output=used / /tmp /dev/shm /run | tr -d ' '").split()
    filled, inodes = called(machine, ("fill",), ("fill_inodes",))
    assert {error for _, error in filled.values()} == {"ENOSPC"}
    kib = {folder: size for folder, (size, _) in filled.items()}
    assert kib["/tmp"] == pytest.approx(64 << 10, rel=0.01)
    assert sum(kib.values()) << 10 < MEMORY
    assert inodes[0] < 17_000
    assert inodes[1] == "ENOSPC"
    after = machine.look("df --output=used / /tmp /dev/shm /run | tr -d ' '").split()
    grown = [int(b) - int(a) for a, b in zip(before[1:], after[1:], strict=True)]
    assert max(grown) < 1 << 10  # KiB; the journal grows


@OTHER_WAYS
def test_no_process_of_a_run_outlives_it(machine: Machine) -> None:
    """By setsid, double fork, as a sibling, hidden, or with its output: its end is the end."""
    result, after = executed(
        machine, [{"code": code_of("leave_processes")}, {"code": code_of("traces")}]
    )
    assert (result.ending, json.loads(result.stdout)[0]) == ("exit", 5)
    assert result.duration_ms < pace.promised(2.0) * 1000  # it does not wait for the end of stdout
    assert json.loads(after.stdout)[0] == []
    await_no_process(machine)


def test_a_run_finds_nothing_of_the_run_before(machine: Machine) -> None:
    """Each run looks, and then leaves all that it can. Of three runs, two have the same slot."""
    results = executed(machine, [{"code": code_of("look_and_leave")}] * 3)
    found, uids = zip(*[json.loads(result.stdout) for result in results], strict=True)
    assert [before for before, _ in found] == [[], [], []]
    assert [len(left) for _, left in found] == [len(run_excess.FOLDERS) + 4] * 3  # the twin
    assert len(set(uids)) < len(uids)
    await_no_process(machine)


@only_in_test_all("the kill of each process of a run is in test_run_crashes")
def test_the_end_of_the_supervisor_is_the_end_of_the_run(machine: Machine) -> None:
    """Killed from outside, as the kernel does when the machine has no memory."""
    with runs.sleeping(machine) as sleeping:
        supervisor = machine.show(sleeping.unit, "MainPID")["MainPID"]
        machine.as_root(f"kill -KILL {supervisor}")
        result = sleeping.result()
    assert (result.exit_code, result.error) == (
        137,
        "the run supervisor was killed, by the code or from outside the run",
    )
    await_no_process(machine)
