"""Entry point of `mcpwrap-front.service`: signals, reload and watchdog."""

import asyncio
import signal
from dataclasses import dataclass, field
from pathlib import Path

from mcpwrap.as_front import event_log, listener_set
from mcpwrap.as_front.endpoint import Ports
from mcpwrap.as_front.event_log import EventLog
from mcpwrap.as_front.listener_set import ListenerSet
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.systemd.sd_notify import Notifier

_ALIVE_EVERY_S = 10.0  # a third of the unit's WatchdogSec=
_SIGNALS = (signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontSettings:
    """Paths and ports of the front."""

    configuration: Path = listener_set.PATH
    events: Path = event_log.PATH
    ports: Ports = field(default_factory=Ports)


def main() -> int:
    """Serve until systemd stops the unit."""
    prctl.forbid_dumps()  # it has no secrets, but the traffic between servers and hosts
    asyncio.run(serve(FrontSettings()))
    return 0


async def serve(settings: FrontSettings) -> None:
    """Serve until SIGTERM. SIGHUP: reload the configuration. SIGUSR1: reopen the event log."""
    received: asyncio.Queue[signal.Signals] = asyncio.Queue()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, received.put_nowait, number)
    notifier, record = Notifier(), EventLog(settings.events)
    async with asyncio.TaskGroup() as tasks:
        served = ListenerSet(settings.configuration, settings.ports, record, tasks)
        await served.reload()
        notifier.ready(served.status())
        while (woken_by := await _next(received)) != signal.SIGTERM:
            match woken_by:
                case signal.SIGHUP:
                    record.reopen()
                    await served.reload()
                case signal.SIGUSR1:
                    record.reopen()
                case _:
                    await served.fit()  # another program may have released an address by now
            notifier.status(served.status())
            notifier.alive()
        await served.close_all()


async def _next(received: asyncio.Queue[signal.Signals]) -> signal.Signals | None:
    """Return the next signal; None when the watchdog notification is due."""
    try:
        async with asyncio.timeout(_ALIVE_EVERY_S):
            return await received.get()
    except TimeoutError:
        return None
