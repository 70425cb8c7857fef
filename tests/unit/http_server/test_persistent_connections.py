"""Accept loop under a flood of clients that do no TLS handshake."""

import asyncio
import socket
import ssl
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from aiohttp import web

from mcpwrap.http_server.persistent_connections import ConnectionLimits, PersistentConnections
from tests.shared import pace

LIMITS = ConnectionLimits(connections=4, line_bytes=1024, field_bytes=1024, fields=16)
FLOOD = 200
ROOM = 8  # descriptors of connections that were evicted, and are closed by the loop soon


async def _respond(_: web.BaseRequest) -> web.StreamResponse:
    return web.Response()


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def _most_descriptors(listener: socket.socket) -> int:
    """Accept all that wait; return how many descriptors there were at most."""
    most = begun = 0
    everything = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:

        def spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
            nonlocal most, begun
            task = tasks.create_task(work)
            most, begun = max(most, _open_descriptors()), begun + 1
            if begun == FLOOD:
                everything.set()
            return task

        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        async with PersistentConnections(listener, _respond, LIMITS, tls) as connections:
            accepting = tasks.create_task(connections.accept(spawn))
            async with asyncio.timeout(pace.WAIT_S):
                await everything.wait()
            accepting.cancel()
    return most


def test_a_flood_takes_no_more_descriptors_than_the_limit() -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=FLOOD))
        for _ in range(FLOOD):
            address = listener.getsockname()
            stack.enter_context(socket.create_connection(address, timeout=pace.WAIT_S))
        before = _open_descriptors()
        assert asyncio.run(_most_descriptors(listener)) - before <= LIMITS.connections + ROOM
