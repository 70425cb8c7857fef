"""Slots, runs and waiting requests of a pool, for `mcpwrap status` and `mcpwrap worker status`."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from mcpwrap.cli.common.output import print_table
from mcpwrap.core.wire.server_files import decode_spec
from mcpwrap.linux import tty
from mcpwrap.machine.worker import ObservedWorker
from mcpwrap.plan import paths

COLUMNS = ("SLOTS", "RUNNING", "QUEUED")
UNUSABLE = {"no-worker", "draining"}  # states of a server whose runs are refused


class RunsStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of a Python server, or of other machines. A number is null if it is not known here."""

    worker: str = ""  # URL of a worker on another machine; "" is this machine's
    slots: int | None = None
    closed_slots: int = 0
    fix: str = ""  # what opens closed slots; "" if none is closed
    running: int | None = None
    queued: int | None = None

    def cells(self) -> list[str]:
        """Return the cells of a table with the columns `COLUMNS`."""
        closed = f" ({self.closed_slots} closed: {self.fix})" if self.closed_slots else ""
        return [f"{_number(self.slots)}{closed}", _number(self.running), _number(self.queued)]


def runs_by_server(names: Iterable[str], worker: ObservedWorker) -> dict[str, RunsStatus]:
    """Return the runs of each of these servers that is a Python server."""
    by_pool, found = runs_by_pool(worker), dict[str, RunsStatus]()
    for name in names:
        if name in by_pool:
            found[name] = by_pool[name]
        elif url := _remote_worker(name):
            found[name] = RunsStatus(worker=url)
    return found


def runs_by_pool(worker: ObservedWorker) -> dict[str, RunsStatus]:
    """Return the runs of each pool of this machine's worker."""
    return {
        name: RunsStatus(
            slots=pool.slots,
            closed_slots=len(pool.closed),
            fix=worker.reopen if pool.closed else "",
            running=pool.runs.running if pool.runs else None,
            queued=pool.runs.queued if pool.runs else None,
        )
        for name, pool in worker.pools.items()
    }


def state_by_worker(worker: ObservedWorker) -> tuple[str, str] | None:
    """Return state and status text of servers whose runs the worker refuses; None if it does not.

    The servers' own units may be up nevertheless.
    """
    match worker.state:
        case "failed" | "stopped":
            return "no-worker", f"{worker.status}: {worker.fix}"
        case "draining":
            return "draining", f"the worker refuses new runs: {worker.fix}"
        case _:
            return None


def print_runs(runs: dict[str, RunsStatus]) -> None:
    """Print a table, if there are Python servers."""
    if runs:
        tty.say()
        print_table(
            ["NAME", *COLUMNS, "WORKER"],
            [[name, *each.cells(), each.worker or "this machine"] for name, each in runs.items()],
        )


def _remote_worker(name: str) -> str:
    """Return the URL of the worker of a server; "" if it has none, or its file cannot be read."""
    with suppress(OSError, msgspec.MsgspecError):
        python = decode_spec(Path(paths.spec(name)).read_bytes()).python
        return python.worker if python else ""
    return ""


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)
