"""Wrappers that `mcpwrap doctor` starts: few at a time, and stopped when they are not in use."""

import os
import select
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, UP, ToolError, properties, run
from mcpwrap.machine.doctor import live_probes
from mcpwrap.plan import paths

AT_ONCE = 8  # each takes 7 to 150 MiB with its server; a machine may have hundreds
_END_S = 10.0  # for doctor's own session, which the gate ends within 2 s on an idle machine


@contextmanager
def side_by_side() -> Iterator[ThreadPoolExecutor]:
    """Lend threads, each of which checks one server. An exception cancels their probes.

    In both cases the wrappers that they started have been ended afterwards.
    """
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield pool
    except BaseException:  # Ctrl-C, or a closed output
        live_probes.cancel_trials()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def ended_afterwards(server: str) -> Iterator[None]:
    """End the wrapper of a server afterwards, unless it runs already.

    Raises:
        ToolError: systemd does not report whether it runs.
    """
    unit = paths.service_unit(server)
    is_anothers = _state(unit) in {*UP, "activating"}
    try:
        yield
    finally:
        if not is_anothers:
            with suppress(ToolError):  # it ends by itself, later
                _end(unit)


def _end(unit: str) -> None:
    """End a wrapper, now or with the last of its sessions, and wait up to `_END_S` seconds for it.

    `systemctl stop` would end a session that an agent has opened since the check. An agent that
    requests one while the wrapper ends is served by the next wrapper: the gate retries.
    """
    if _state(unit) == "activating":  # the probe was cancelled
        with suppress(ToolError):
            run(SYSTEMCTL, "start", "--", unit)  # which waits for the start in progress
    shown = properties([unit], ["ActiveState", "MainPID"])[unit]
    if shown["ActiveState"] not in UP:
        return
    try:
        pidfd = os.pidfd_open(int(shown["MainPID"]))
    except OSError:  # it has ended
        return
    try:
        run(SYSTEMCTL, "kill", "--kill-whom=main", "--signal=SIGUSR1", "--", unit)
        select.select([pidfd], [], [], _END_S)
    finally:
        os.close(pidfd)


def _state(unit: str) -> str:
    return properties([unit], ["ActiveState"])[unit]["ActiveState"]
