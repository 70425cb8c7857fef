"""Attempts of `guest/run_attacks.py`: in a run, and outside of it as another account."""

import inspect
import json
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from tests.system.bed.machine import Machine
from tests.system.guest import run_attacks
from tests.system.support.python_servers import run_python

Attempt = tuple[Any, ...]  # the name of a function, and its arguments


def calling(module: ModuleType, function: str, *arguments: Any) -> str:
    """Return code that calls a function of a file of `guest/`, and prints the result as JSON."""
    call = f"{function}(*{list(arguments)!r})"
    return f"{inspect.getsource(module)}\n\nimport json\nprint(json.dumps({call}))\n"


def in_a_run(machine: Machine, attempts: Sequence[Attempt], *, server: str = "python") -> list[Any]:
    """Make these attempts in one run; return their outcomes."""
    code = calling(run_attacks, "outcomes", [list(attempt) for attempt in attempts])
    result = run_python(machine, code, server=server)
    assert (result.exit_code, result.stderr) == (0, ""), result
    found: list[Any] = json.loads(result.stdout)
    return found


def outside(machine: Machine, user: str, attempts: Sequence[Attempt]) -> list[Any]:
    """Make these attempts as this account, which nothing confines."""
    found: list[Any] = machine.call("run_attacks", "outcomes", attempts, user=user)
    return found


def beside(machine: Machine, pid: int, account: str, attempts: Sequence[Attempt]) -> list[Any]:
    """Make these attempts as this account, in the view of the machine that this process has."""
    code = calling(run_attacks, "outcomes", [list(attempt) for attempt in attempts])
    become = f"setpriv --reuid={account} --regid={account} --clear-groups"
    enter = f"nsenter -t {pid} -m -- {become} /usr/bin/python3 -"
    found: list[Any] = json.loads(machine.as_root(enter, stdin=code).out)
    return found
