"""Load of a Python server: agents side by side, with samples of its run slots. Runs as root."""

import base64
import inspect
from collections.abc import Sequence
from typing import Any

from tests.system.guest import mixed_run
from tests.system.guest.python_agents import Load
from tests.system.guest.run_slots import SlotWatch

TIMEOUT_BY_KIND = {"spin": 1, "wait": 15}
_LOOK_EVERY_S = 0.02
Run = tuple[str, int]  # kind and number


def arguments(kind: str, number: int) -> dict[str, Any]:
    """Return the arguments of a call that runs this kind of `mixed_run`."""
    given: dict[str, Any] = {"code": f"{inspect.getsource(mixed_run)}\nrun({kind!r}, {number})\n"}
    if kind in TIMEOUT_BY_KIND:
        given["timeout"] = TIMEOUT_BY_KIND[kind]
    if kind == "carry":
        given["files"] = {"data": {"base64": base64.b64encode(data(number)).decode()}}
    return given


def data(number: int) -> bytes:
    """Return the content of the file that a run carries."""
    return bytes([number % 251]) * (1000 + number)


def calls_of(runs_by_agent: Sequence[Sequence[Run]]) -> list[list[dict[str, Any]]]:
    """Return the arguments of each agent's calls."""
    return [[arguments(*run) for run in runs] for runs in runs_by_agent]


def watched(server: str, runs_by_agent: Sequence[Sequence[Run]]) -> dict[str, Any]:
    """Make all calls; return their outcomes, and what the samples show."""
    watch = SlotWatch(server)
    outcomes = Load(server, calls_of(runs_by_agent)).run(watch.look, _LOOK_EVERY_S)
    return {
        "outcomes": outcomes,
        "samples": watch.samples,
        "most_runs": watch.most_runs,
        "shared": watch.shared[:5],
    }
