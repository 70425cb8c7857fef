"""Wrappers that `mcpwrap doctor` starts: few at a time, and stopped once they are not in use."""

import os
import select
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, UP, ToolError, properties, run
from mcpwrap.machine.doctor import live_probes
from mcpwrap.plan import paths

AT_ONCE = 8  # with its server each takes 7 to 150 MiB; a machine may have hundreds
_END_S = 10.0  # for the session of our own, which the gate ends within 2 s on an idle machine


@contextmanager
def side_by_side() -> Iterator[ThreadPoolExecutor]:
    """Lend threads, each of which tries one server. Leaving early breaks off what they try.

    Either way what they started has been ended afterwards.
    """
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield pool
    except BaseException:  # Ctrl-C, or an output that is closed
        live_probes.cancel_trials()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def ended_afterwards(server: str) -> Iterator[None]:
    """End the wrapper of a server afterwards, unless it runs already.

    Raises:
        ToolError: systemd does not say whether it does.
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
    """Have a wrapper end, now or with the last of its sessions, and wait for it a while.

    `systemctl stop` would end the session of an agent that has come since we looked. An agent that
    asks while the wrapper ends is served by the next one: the gate asks again.
    """
    if _state(unit) == "activating":  # broken off
        with suppress(ToolError):
            run(SYSTEMCTL, "start", "--", unit)  # which waits for the start that is under way
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
