"""State of the worker and of its run slots, as every account may see it. Reads only."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from mcpwrap.core.names import slot_name
from mcpwrap.core.wire.execution import worker_file, worker_status
from mcpwrap.core.wire.execution.worker_file import Worker
from mcpwrap.core.wire.execution.worker_status import PoolRuns
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.systemd.systemctl import UP, properties
from mcpwrap.machine import observer
from mcpwrap.plan import paths, run_slots

# off: the configuration needs no worker · ready: also if it starts at the first request
State = Literal["off", "ready", "draining", "starting", "failed", "stopped"]
_APPLY, _RESUME = "`sudo mcpwrap apply`", "`sudo mcpwrap resume`"
TLS_FIX = f"restore the files; then `sudo systemctl restart {paths.WORKER_SERVICE}`"
_RESTART = f"`sudo systemctl restart {paths.WORKER_UNIT}`; `journalctl -u mcpwrap-worker` shows why"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """Run slots of one pool. Without `runs`, its numbers are not known."""

    slots: int
    closed: tuple[str, ...] = ()  # units of slots that do not listen
    runs: PoolRuns | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedWorker:
    """State of this machine's worker, its problem if it takes no requests, and what to do."""

    state: State
    status: str
    fix: str = ""
    reopen: str = _APPLY  # what opens closed slots
    listen: str = ""  # ADDRESS:PORT for other machines
    listener_flaw: str = ""  # why other machines are refused there
    pools: dict[str, PoolState]


def observe() -> ObservedWorker:
    """Return the present state.

    Raises:
        McpwrapError: root's file is damaged, or systemd does not answer.
    """
    configured = configuration()
    slots = slot_sockets(configured)
    units = [paths.WORKER_UNIT, paths.WORKER_SERVICE, *(u for of in slots.values() for u in of)]
    shown = properties(units, ["ActiveState", "StatusText", "Result"])
    is_stopped = observer.panic().everything
    state, status, fix = _state(configured, shown[paths.WORKER_UNIT], shown[paths.WORKER_SERVICE])
    if is_stopped and state != "off":  # also if `apply` has started the units again
        state, status, fix = "stopped", "`mcpwrap panic` is in force", _RESUME
    text = shown[paths.WORKER_SERVICE]["StatusText"]
    reported = worker_status.parse(text) if state in {"ready", "draining"} else None
    listener_flaw = "" if reported is None else reported.listener_flaw
    is_idle = shown[paths.WORKER_SERVICE]["ActiveState"] == "inactive"
    return ObservedWorker(
        state=state,
        status=status,
        fix=fix or (TLS_FIX if listener_flaw else ""),
        reopen=_RESUME if is_stopped else _APPLY,
        listen=configured.listen,
        listener_flaw=listener_flaw,
        pools={
            name: PoolState(
                slots=len(sockets),
                closed=tuple(u for u in sockets if shown[u]["ActiveState"] != "active"),
                runs=PoolRuns(0, 0) if is_idle else None if reported is None else reported.of(name),
            )
            for name, sockets in slots.items()
        },
    )


def configuration() -> Worker:
    """Return the worker's configuration that was applied; one without pools if there is none.

    Raises:
        McpwrapError: the file is damaged.
    """
    try:
        return worker_file.decode(Path(paths.WORKER).read_bytes())
    except FileNotFoundError:
        return Worker()
    except msgspec.MsgspecError as error:
        raise McpwrapError(
            f"damaged: {error}",
            where=paths.WORKER,
            fix=_APPLY,
            code="E-WORKER-FILE",
        ) from error


def slot_sockets(configured: Worker) -> dict[str, list[str]]:
    """Return the socket units of all run slots, by pool."""
    return {
        name: [
            paths.job_socket(run_slots.instance(slot_name(name, number)))
            for number in range(pool.limits.at_once)
        ]
        for name, pool in configured.pools.items()
    }


def _state(
    configured: Worker, sock: dict[str, str], service: dict[str, str]
) -> tuple[State, str, str]:
    """Return state, status text and fix."""
    if not configured.pools:
        return "off", "the configuration has no Python server with this machine's worker", ""
    for unit, shown in ((paths.WORKER_SERVICE, service), (paths.WORKER_UNIT, sock)):
        if shown["ActiveState"] == "failed":
            return "failed", f"{unit} has failed ({shown['Result']})", _RESTART
    if sock["ActiveState"] != "active":
        return "stopped", f"{paths.WORKER_UNIT} is {sock['ActiveState']}", _APPLY
    return _state_of_service(service["ActiveState"], service["StatusText"])


def _state_of_service(active: str, text: str) -> tuple[State, str, str]:
    if active == "inactive":
        return "ready", "starts on first use", ""
    if active not in UP:
        return "starting", f"{paths.WORKER_SERVICE} is {active}", "wait a moment"
    found = worker_status.parse(text)
    if found is None:
        return "ready", text, ""
    numbers = text.partition(": ")[2]  # without the state, which stands beside it
    if found.is_draining:
        return "draining", numbers, "`sudo mcpwrap worker resume`"
    return "ready", numbers, ""
