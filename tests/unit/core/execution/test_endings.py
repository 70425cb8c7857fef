"""Endings of runs: exit code, error and `killed`."""

import signal

import pytest

from mcpwrap.core.execution import endings
from mcpwrap.core.execution.endings import RunOutcome
from mcpwrap.core.wire.execution.execute_api import Ending, JobEnd
from mcpwrap.core.wire.execution.worker_file import RunLimits

LIMITS = RunLimits()
MEMORY = (
    "memory: 512 MiB reached (runs.memory): read the file in chunks, or keep less in memory at a "
    "time"
)
OUTPUT = (
    "output: 4 MiB reached (16 times runs.output, 256 KiB): print less, or write it to a file in "
    "/out"
)
TIMEOUT = (
    "timeout: 60 s reached (runs.seconds): do less in one call, or save what is done to /out and "
    "continue in another call"
)
LOWER = (
    "timeout: 10 s reached (the argument `timeout`, at most 60 by runs.seconds): raise it, or do "
    "less in one call"
)


@pytest.mark.parametrize(
    ("ending", "status", "timeout_s", "expected"),
    [
        ("exit", 0, 60, RunOutcome("exit", 0)),
        ("exit", 1, 60, RunOutcome("exit", 1)),  # a failing program is no error of the run
        ("exit", 255, 60, RunOutcome("exit", 255)),
        ("signal", 11, 60, RunOutcome("signal", 139, "killed by SIGSEGV")),
        ("signal", 9, 60, RunOutcome("signal", 137, "killed by SIGKILL")),
        ("signal", 31, 60, RunOutcome("signal", 159,
         "killed by SIGSYS: it made a system call that is not allowed")),
        ("signal", 25, 60, RunOutcome("signal", 153,
         "killed by SIGXFSZ: it has written a file that is too long")),
        ("signal", 40, 60, RunOutcome("signal", 168, "killed by signal 40")),  # real-time
        ("signal", 0, 60, RunOutcome("signal", 128, "killed by signal 0")),  # the supervisor lies
        ("signal", 255, 60, RunOutcome("signal", 255, "killed by signal 255")),
        ("timeout", 9, 60, RunOutcome("timeout", 137, TIMEOUT, killed=True)),
        ("timeout", 9, 10, RunOutcome("timeout", 137, LOWER, killed=True)),
        ("memory", 9, 60, RunOutcome("memory", 137, MEMORY, killed=True)),
        ("memory", 1, 60, RunOutcome("memory", 137, MEMORY, killed=True)),  # of a child alone
        ("output", 9, 60, RunOutcome("output", 137, OUTPUT, killed=True)),
        ("start", 0, 60, RunOutcome("start", 1, "start: no Landlock")),
    ],
)  # fmt: skip
def test_an_ending_has_its_outcome(
    ending: Ending, status: int, timeout_s: int, expected: RunOutcome
) -> None:
    end = JobEnd(ending=ending, status=status, duration_ms=1, why="no Landlock")
    assert endings.outcome_of(end, LIMITS, timeout_s) == expected


def test_a_start_that_failed_without_a_reason_is_named() -> None:
    end = JobEnd(ending="start", status=0, duration_ms=0)
    outcome = endings.outcome_of(end, LIMITS, 60)
    assert outcome.error == "start: the run could not be started"


def test_signals_have_their_names() -> None:
    for number in range(1, 32):
        end = JobEnd(ending="signal", status=number, duration_ms=1)
        error = endings.outcome_of(end, LIMITS, 60).error or ""
        assert error.partition(":")[0] == f"killed by {signal.Signals(number).name}"


@pytest.mark.parametrize(
    ("elapsed_s", "expected"),
    [
        (
            1.0,
            RunOutcome(
                "signal", 137, "the run supervisor was killed, by the code or from outside the run"
            ),
        ),
        (60.0, RunOutcome("timeout", 137, TIMEOUT, killed=True)),  # PID 1 has ended the unit
    ],
)
def test_frames_without_an_end(elapsed_s: float, expected: RunOutcome) -> None:
    assert endings.supervisor_lost(LIMITS, 60, elapsed_s) == expected


@pytest.mark.parametrize(
    ("count_bytes", "text"),
    [
        (0, "0 bytes"),
        (1000, "1000 bytes"),
        (1024, "1 KiB"),
        (96 * 1024, "96 KiB"),
        (1024**2, "1 MiB"),
        (3 * 1024**3, "3072 MiB"),
    ],
)
def test_a_size_is_read_by_a_person(count_bytes: int, text: str) -> None:
    assert endings.size(count_bytes) == text
