"""Wrappers that `mcpwrap doctor` starts: it ends those that it started, and no others."""

import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, ToolError
from mcpwrap.machine.doctor import live_probes, trial_wrappers
from tests.shared import pace

UNIT = "mcpwrap@one.service"
KILL = (SYSTEMCTL, "kill", "--kill-whom=main", "--signal=SIGUSR1", "--", UNIT)
START = (SYSTEMCTL, "start", "--", UNIT)


class Systemd:
    """systemd with a list of states for a unit, and a process that ends on `systemctl kill`."""

    def __init__(self, states: list[str], process: subprocess.Popen[bytes]) -> None:
        self.states = states
        self.process = process
        self.commands: list[tuple[str, ...]] = []

    def properties(self, units: list[str], _: list[str]) -> dict[str, dict[str, str]]:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return {unit: {"ActiveState": state, "MainPID": str(self.process.pid)} for unit in units}

    def run(self, *argv: str) -> str:
        self.commands.append(argv)
        if "kill" in argv:
            self.process.kill()
        return ""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as started:
        yield started
        started.kill()


@pytest.mark.parametrize(
    ("states", "commands"),
    [
        (["inactive", "active"], [KILL]),
        (["failed", "active"], [KILL]),
        (["deactivating", "active"], [KILL]),
        (["active"], []),  # an agent uses it, or it is idle since one left
        (["reloading"], []),
        (["activating", "active"], []),  # an agent has just requested it
        (["inactive", "inactive"], []),  # it did not start, or has ended
        (["inactive", "activating", "active"], [START, KILL]),  # cancelled
        (["inactive", "activating", "failed"], [START]),
    ],
)
def test_a_started_wrapper_is_ended(
    monkeypatch: pytest.MonkeyPatch,
    process: subprocess.Popen[bytes],
    states: list[str],
    commands: list[tuple[str, ...]],
) -> None:
    systemd = Systemd(list(states), process)
    monkeypatch.setattr(trial_wrappers, "properties", systemd.properties)
    monkeypatch.setattr(trial_wrappers, "run", systemd.run)
    monkeypatch.setattr(trial_wrappers, "_END_S", pace.WAIT_S)
    with pytest.raises(KeyboardInterrupt), trial_wrappers.ended_afterwards("one"):
        raise KeyboardInterrupt
    assert systemd.commands == commands
    assert (process.poll() is not None) == (KILL in commands)


def test_a_wrapper_that_cannot_be_ended_is_left(
    monkeypatch: pytest.MonkeyPatch, process: subprocess.Popen[bytes]
) -> None:
    def fails(*_: str) -> str:
        raise ToolError("timed out", where="systemctl", fix="see", code="E-TOOL-FAILED")

    states = Systemd(["inactive", "active"], process)
    monkeypatch.setattr(trial_wrappers, "properties", states.properties)
    monkeypatch.setattr(trial_wrappers, "run", fails)
    with trial_wrappers.ended_afterwards("one"):
        pass
    process.kill()
    process.wait()
    states.states = ["inactive", "active"]  # no process has its PID any more
    with trial_wrappers.ended_afterwards("one"):
        pass


def test_few_at_a_time_and_in_order() -> None:
    at_work, most = 0, 0
    lock = threading.Lock()

    def one(number: int) -> int:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.001)
        with lock:
            at_work -= 1
        return number

    with trial_wrappers.side_by_side() as pool:
        assert list(pool.map(one, range(50))) == list(range(50))
    assert most <= trial_wrappers.AT_ONCE


def test_an_exception_cancels_the_probes_and_waits_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cancelled, ended = threading.Event(), threading.Event()
    monkeypatch.setattr(live_probes, "cancel_trials", cancelled.set)

    def one() -> None:
        cancelled.wait()
        ended.set()

    def fill(number: int) -> None:
        with trial_wrappers.side_by_side() as pool:
            for _ in range(number):
                pool.submit(one)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(20)
    assert ended.is_set()
