"""Kills of random processes while agents have code executed. Runs inside the machine, as root."""

import os
import pwd
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.system.guest import run_slots
from tests.system.guest.python_agents import Load
from tests.system.guest.run_load import Run, calls_of

_LOOK_EVERY_S = 0.01
_ANSWERS_BETWEEN = (2, 6)  # at least and at most, from one kill to the next


def servers(server: str) -> list[int]:
    """Return the programs of a Python server, one for each session."""
    return _of_account(f"mcpw-{server}", b"/usr/libexec/mcpwrap/mcpwrap-python")


def workers(_server: str) -> list[int]:
    """Return the worker."""
    return _of_account("mcpwrap-worker", b"/usr/libexec/mcpwrap/mcpwrap-worker")


def supervisors(server: str) -> list[int]:
    """Return the supervisors of the runs that go on."""
    return [each.parent for each in run_slots.first_processes(server)]


def first_processes(server: str) -> list[int]:
    """Return the first processes of the runs that go on."""
    return [each.pid for each in run_slots.first_processes(server)]


VICTIMS: dict[str, Callable[[str], list[int]]] = {
    "server": servers,
    "worker": workers,
    "supervisor": supervisors,
    "first process": first_processes,
}


def _of_account(account: str, program: bytes) -> list[int]:
    uid = pwd.getpwnam(account).pw_uid
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if folder.stat().st_uid in (uid, 0) and program in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


class RandomKills:
    """Kills of random victims, one after every few answers."""

    def __init__(self, server: str, seed: int) -> None:
        self._server = server
        self._choice = random.Random(seed)
        self._kinds: list[str] = []
        self._due_at = 1
        self.kills: list[dict[str, Any]] = []

    def look(self, answers: int) -> None:
        """Kill the next victim when it is due and there is one."""
        if answers < self._due_at:
            return
        if not self._kinds:  # each kind as often as the others
            self._kinds = list(VICTIMS)
            self._choice.shuffle(self._kinds)
        victims = sorted(VICTIMS[self._kinds[-1]](self._server))
        if not victims:
            return
        at_s = time.monotonic()  # before: the caller's error may come at once
        with suppress(ProcessLookupError):
            os.kill(self._choice.choice(victims), signal.SIGKILL)
            self.kills.append({"victim": self._kinds.pop(), "at_s": at_s})
            self._due_at = answers + self._choice.randint(*_ANSWERS_BETWEEN)


def under_kills(server: str, runs_by_agent: Sequence[Sequence[Run]], seed: int) -> dict[str, Any]:
    """Make all calls under kills; return their outcomes, and the kills."""
    load, kills = Load(server, calls_of(runs_by_agent)), RandomKills(server, seed)
    outcomes = load.run(lambda: kills.look(len(load.outcomes)), _LOOK_EVERY_S)
    return {"outcomes": outcomes, "kills": kills.kills}


def under_command(
    server: str, runs_by_agent: Sequence[Sequence[Run]], command: str, after: int
) -> list[dict[str, Any]]:
    """Make all calls, with one command of root after this many answers; return the outcomes."""
    load, left = Load(server, calls_of(runs_by_agent)), [command]

    def act() -> None:
        if left and len(load.outcomes) >= after and first_processes(server):
            subprocess.run(["sh", "-c", left.pop()], check=True, stdout=subprocess.DEVNULL)

    return load.run(act, _LOOK_EVERY_S)
