"""Runs of Python servers, for `mcpwrap status`: slots, runs, and requests that wait."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from mcpwrap.cli.common.output import print_table
from mcpwrap.core.wire.server_files import decode_spec
from mcpwrap.linux import tty
from mcpwrap.machine.worker import ObservedWorker, PoolState
from mcpwrap.plan import paths

UNUSABLE = {"no-worker", "draining"}  # states of a server whose runs are refused


class RunsStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of a Python server. A number is null if it is not known here."""

    worker: str  # URL of a worker on another machine; "" is this machine's
    slots: int | None = None
    closed_slots: int = 0
    running: int | None = None
    queued: int | None = None


def runs_by_server(names: Iterable[str], worker: ObservedWorker) -> dict[str, RunsStatus]:
    """Return the runs of each of these servers that is a Python server."""
    found: dict[str, RunsStatus] = {}
    for name in names:
        if name in worker.pools:
            found[name] = _of_pool(worker.pools[name])
        elif url := _remote_worker(name):
            found[name] = RunsStatus(worker=url)
    return found


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
            ["NAME", "SLOTS", "RUNNING", "QUEUED", "WORKER"],
            [
                [name, _number(r.slots), _number(r.running), _number(r.queued), _worker(r)]
                for name, r in runs.items()
            ],
        )


def _of_pool(pool: PoolState) -> RunsStatus:
    return RunsStatus(
        worker="",
        slots=pool.slots,
        closed_slots=len(pool.closed),
        running=None if pool.runs is None else pool.runs.running,
        queued=None if pool.runs is None else pool.runs.queued,
    )


def _remote_worker(name: str) -> str:
    """Return the URL of the worker of a server; "" if it has none, or its file cannot be read."""
    with suppress(OSError, msgspec.MsgspecError):
        python = decode_spec(Path(paths.spec(name)).read_bytes()).python
        return python.worker if python else ""
    return ""


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)


def _worker(runs: RunsStatus) -> str:
    if runs.closed_slots:
        return f"{runs.closed_slots} of {runs.slots} slots are closed: `sudo mcpwrap apply`"
    return runs.worker or "this machine"
