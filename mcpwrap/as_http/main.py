"""Entry point of `mcpwrap-http@NAME.UID.service`, and of `NAME.UID.URL` for a further URL."""

import asyncio
import logging
import os
import signal
import socket
import sys
import traceback
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec

from mcpwrap.as_http.application import Application
from mcpwrap.as_http.connections import HttpConnections
from mcpwrap.as_http.state import ListenerSettings, ListenerState
from mcpwrap.core.wire import listener_file
from mcpwrap.core.wire.listener_file import Listener
from mcpwrap.errors import EXIT_USAGE, UsageError
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.systemd.sd_notify import Notifier
from mcpwrap.linux.systemd.socket_activation import listening_socket
from mcpwrap.linux.systemd.stderr_log import log_line

_ALIVE_EVERY_S = 10.0  # a third of the unit's WatchdogSec=


def main() -> int:
    """Serve until systemd stops the listener, or until it is idle."""
    environ = dict(os.environ)  # noqa: TID251 - a main()
    prctl.forbid_dumps()  # all messages of agent and server are in this process's memory
    # Only the agent itself can send a request that cannot be parsed, so none is logged.
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    try:
        listener = read_listener(Path(environ["CREDENTIALS_DIRECTORY"], "listener"), sys.argv)
    except UsageError as error:
        log_line(f"mcpwrap-http: {error}")
        return EXIT_USAGE
    asyncio.run(_until_stopped(listening_socket(environ), listener))
    return 0


def read_listener(path: Path, argv: list[str]) -> Listener:
    """Read root's configuration of this instance, `NAME.UID` or `NAME.UID.URL`.

    Raises:
        UsageError: the file cannot be read, is malformed, or is for another instance.
    """
    fix = "run `sudo mcpwrap apply`, which writes the file"
    try:
        listener = listener_file.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        problem = f"cannot be read: {error}"
        raise UsageError(problem, where=str(path), fix=fix, code="E-HTTP-LISTENER-FILE") from error
    if argv[1:] != [listener.instance()]:
        problem = f"is for {listener.instance()}, and not for {argv[1:]}"
        raise UsageError(problem, where=str(path), fix=fix, code="E-HTTP-LISTENER-FILE")
    return listener


async def _until_stopped(listening: socket.socket, listener: Listener) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await serve((listening, listener), ListenerSettings(), stop, Notifier())


async def serve(
    bound: tuple[socket.socket, Listener],
    settings: ListenerSettings,
    stop: asyncio.Event,
    notifier: Notifier,
) -> None:
    """Serve until `stop`, or until there was no session and no connection for `idle_s`."""
    listening, listener = bound
    async with asyncio.TaskGroup() as tasks:
        running: set[asyncio.Task[None]] = set()

        def spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
            task = tasks.create_task(_log_failure(work))
            running.add(task)
            task.add_done_callback(running.discard)
            return task

        state = ListenerState(listener, settings, spawn)
        async with HttpConnections(
            listening, Application(state).handle, settings.limits
        ) as connections:
            state.connections = connections
            spawn(connections.accept(spawn))
            notifier.ready(f"ready at http://{state.host}/mcp for UID {listener.uid}")
            while not stop.is_set() and not state.is_idle():
                await _wait(stop, min(_ALIVE_EVERY_S, settings.idle_s))
                notifier.alive()
                state.sweep()
        state.gates.abort_all()
        for task in list(running):
            task.cancel()


async def _log_failure(work: Coroutine[Any, Any, None]) -> None:
    """Run a task of one session, and log its traceback: a bug must not end the other sessions."""
    try:
        await work
    except Exception:  # noqa: BLE001 - see above
        log_line(f"a bug in mcpwrap-http: {traceback.format_exc()}")


async def _wait(stop: asyncio.Event, at_most_s: float) -> None:
    try:
        async with asyncio.timeout(at_most_s):
            await stop.wait()
    except TimeoutError:
        return
