"""Entry point of `mcpwrap-worker.service`: sockets, TLS, signals, watchdog."""

import asyncio
import logging
import os
import signal
import socket
import ssl
import traceback
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcpwrap.as_worker.application import WorkerApplication
from mcpwrap.as_worker.state import WorkerSettings, WorkerState
from mcpwrap.core.wire.execution.worker_file import CERTIFICATE, KEY, NO_CREDENTIAL
from mcpwrap.http_server.persistent_connections import PersistentConnections
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.systemd.sd_notify import Notifier
from mcpwrap.linux.systemd.socket_activation import any_listening_sockets
from mcpwrap.linux.systemd.stderr_log import log_line

_ALIVE_EVERY_S = 10.0  # a third of the unit's WatchdogSec=
_STATUS_EVERY_S = 0.5
Sockets = list[tuple[socket.socket, ssl.SSLContext | None]]
_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)


def main() -> int:
    """Serve until systemd stops the unit."""
    environ = dict(os.environ)  # noqa: TID251 - a main()
    prctl.forbid_dumps()  # code and output of all servers' runs are in this process's memory
    # Any client can send a request that cannot be parsed, so none is logged.
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    sockets, settings = with_tls(
        any_listening_sockets(environ), WorkerSettings(), environ.get("CREDENTIALS_DIRECTORY", "")
    )
    asyncio.run(_until_stopped(sockets, settings))
    return 0


def with_tls(
    listeners: Sequence[socket.socket], settings: WorkerSettings, credentials: str
) -> tuple[Sockets, WorkerSettings]:
    """Return each socket with its TLS, and the settings with the reason why TLS cannot be used.

    The socket on loopback has none: packet rules guard it, and servers of this machine are served
    whatever the certificate is.
    """
    sockets: Sockets = []
    for one in listeners:
        if one.getsockname() == settings.loopback:
            sockets.append((one, None))
            continue
        try:
            context = _tls(Path(credentials))
        except OSError:  # also errors of ssl
            # Without a certificate, each handshake of this context fails.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            settings = replace(settings, listener_flaw=_flaw(Path(credentials)))
            log_line(f"mcpwrap-worker: other machines are refused: {settings.listener_flaw}")
        sockets.append((one, context))
    return sockets, settings


def _tls(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3  # its clients are mcpwrap's own, and HAProxy
    context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    return context


def _flaw(folder: Path) -> str:
    """Return why certificate and key cannot be used: texts of OpenSSL do not name the file."""
    files = " and ".join(name for name in (CERTIFICATE, KEY) if _is_absent(folder / name))
    if files:
        return f"a file that [worker] names is missing: {files} [E-WORKER-TLS]"
    return "what [worker] names is not a PEM certificate with its key [E-WORKER-TLS]"


def _is_absent(credential: Path) -> bool:
    try:
        return credential.read_bytes() == NO_CREDENTIAL.encode()
    except OSError:
        return True  # systemd did not provide it


async def _until_stopped(sockets: Sockets, settings: WorkerSettings) -> None:
    received: asyncio.Queue[signal.Signals] = asyncio.Queue()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, received.put_nowait, number)
    await serve(sockets, settings, received, Notifier())


async def serve(
    sockets: Sockets,
    settings: WorkerSettings,
    received: asyncio.Queue[signal.Signals],
    notifier: Notifier,
) -> None:
    """Serve until SIGTERM. SIGUSR1: refuse new requests. SIGUSR2: accept them again."""
    async with asyncio.TaskGroup() as tasks:
        running: set[asyncio.Task[None]] = set()

        def spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
            task = tasks.create_task(_log_failure(work))
            running.add(task)
            task.add_done_callback(running.discard)
            return task

        state = WorkerState(settings, spawn)
        async with AsyncExitStack() as stack:
            for listener, tls in sockets:
                host = "" if tls else "{}:{}".format(*listener.getsockname())
                handler = WorkerApplication(state, host).handle
                table = PersistentConnections(listener, handler, settings.connections, tls)
                spawn((await stack.enter_async_context(table)).accept(spawn))
            state.refresh()
            notifier.ready(state.status_text())
            spawn(_report(state, notifier))
            while (woken_by := await _next(received)) != signal.SIGTERM:
                if woken_by is not None:
                    state.is_draining = woken_by == signal.SIGUSR1
                state.refresh()
                notifier.status(state.status_text())
                notifier.alive()
            await _stop(state, notifier)
        for task in list(running):
            task.cancel()


async def _report(state: WorkerState, notifier: Notifier) -> None:
    """Send the status to systemd at each change, but no more often than a person can read it."""
    while True:
        await state.has_news.wait()
        state.has_news.clear()
        notifier.status(state.status_text())
        await asyncio.sleep(_STATUS_EVERY_S)


async def _stop(state: WorkerState, notifier: Notifier) -> None:
    """Wait for runs, and keep the watchdog quiet meanwhile."""
    async with asyncio.TaskGroup() as tasks:
        stopping = tasks.create_task(state.stop())
        while not stopping.done():
            notifier.alive()
            await asyncio.wait({stopping}, timeout=_ALIVE_EVERY_S)


async def _log_failure(work: Coroutine[Any, Any, None]) -> None:
    """Run a task of one request, and log its traceback: a bug must not end the other requests."""
    try:
        await work
    except Exception:  # noqa: BLE001 - see above
        log_line(f"a bug in mcpwrap-worker: {traceback.format_exc()}")


async def _next(received: asyncio.Queue[signal.Signals]) -> signal.Signals | None:
    """Return the next signal; None when the watchdog notification is due."""
    try:
        async with asyncio.timeout(_ALIVE_EVERY_S):
            return await received.get()
    except TimeoutError:
        return None
