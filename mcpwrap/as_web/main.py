"""Entry point of `mcpwrap-web.service`."""

import asyncio
import logging
import os
import signal
import socket

from mcpwrap.as_web.application import build
from mcpwrap.as_web.connections import WebConnections
from mcpwrap.as_web.state import WebSettings, WebState
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.systemd.sd_notify import Notifier
from mcpwrap.linux.systemd.socket_activation import listening_socket

_ALIVE_EVERY_S = 10.0  # a third of the unit's WatchdogSec=


def main() -> int:
    """Serve until systemd stops the unit, or it is idle."""
    prctl.forbid_dumps()  # passwords pass through
    # An unparsable request is not worth a log line: any account of the machine can send one.
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    listener = listening_socket(dict(os.environ))  # noqa: TID251 - a main()
    asyncio.run(_until_stopped(listener))
    return 0


async def _until_stopped(listener: socket.socket) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await serve(listener, WebSettings(), stop, Notifier())


async def serve(
    listener: socket.socket, settings: WebSettings, stop: asyncio.Event, notifier: Notifier
) -> None:
    """Serve until `stop`, or until there was no session and no connection for `idle_s`."""
    state = WebState(listener.getsockname()[1], settings)
    application = build(state)
    async with WebConnections(listener, application, settings.limits) as connections:
        state.connections = connections
        notifier.ready(f"ready at http://{state.hosts[0]}/")
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(connections.accept()), tasks.create_task(state.live.run())]
            while not stop.is_set() and not state.is_idle():
                await _wait(stop, min(_ALIVE_EVERY_S, settings.idle_s))
                notifier.alive()
            for task in running:
                task.cancel()


async def _wait(stop: asyncio.Event, at_most_s: float) -> None:
    try:
        async with asyncio.timeout(at_most_s):
            await stop.wait()
    except TimeoutError:
        return
