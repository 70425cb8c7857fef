"""A run that goes on while a story does something beside it."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.support.python_servers import RunResult, run_python

# Of one run at its limit of 64. The kernel counts processes of a UID over all machines of the host,
# and slots that wait on another one are among them.
TASKS = range(60, 65)
# By its arguments root sees that the code has come to its end, and who runs it.
_COMMAND = "sleep 7777"
_SLEEP = f"\nimport os\nos.execv('/usr/bin/sleep', {_COMMAND.split()!r})\n"
_LOOK = f"pgrep -x -f '{_COMMAND}' || true"


@dataclass(frozen=True)
class SleepingRun:
    """Run whose first process sleeps: its PID on the machine, and its account."""

    pid: int
    account: str
    _call: Future[RunResult]

    @property
    def unit(self) -> str:
        """Return the unit of its run slot."""
        return f"mcpwrap-job@{self.account.removeprefix('mcpj-')}.service"

    def result(self) -> RunResult:
        """Wait for its end."""
        return self._call.result(pace.WAIT_S)


@contextmanager
def sleeping(machine: Machine, code: str = "", **arguments: Any) -> Iterator[SleepingRun]:
    """Start a run that executes this code and then sleeps; end it with the block."""
    with ThreadPoolExecutor() as pool:
        call = pool.submit(run_python, machine, code + _SLEEP, **arguments)
        try:
            pace.until(lambda: call.done() or bool(machine.look(_LOOK)))
            pid = int(machine.look(_LOOK))
            account = machine.look(f"stat -c %U /proc/{pid}").strip()
            yield SleepingRun(pid, account, call)
        finally:
            machine.as_root(f"pkill -KILL -x -f '{_COMMAND}' || true")


def is_alive(machine: Machine, pid: int) -> bool:
    """Return whether a process still executes."""
    return str(pid) in machine.look(_LOOK).split()
