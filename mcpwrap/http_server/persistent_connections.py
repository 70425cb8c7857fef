"""Persistent connections of an HTTP server: accept loop, and timeouts between the requests."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web

from mcpwrap.http_server.connection_table import ConnectionTable, accepted

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of the connections of one socket, and of the heads on them."""

    connections: int
    line_bytes: int
    field_bytes: int
    fields: int
    head_s: float = 10.0  # until the first head of a connection is complete, TLS included
    between_s: float = 75.0  # from a response to the next complete head; clients keep connections


class PersistentConnections:
    """Connection table, and accept loop on a socket that PID 1 created.

    A client that closes its connection, or only its sending half, cancels its request at once. A
    handler sends a large response itself: after its return the connection can be evicted.
    """

    def __init__(
        self,
        listener: socket.socket,
        handler: Handler,
        limits: ConnectionLimits,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._listener = listener
        self._handler = handler
        self._limits = limits
        self._tls = tls
        self._table = ConnectionTable(limits.connections)
        self._server = web.Server(
            self._handle,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=limits.between_s,
            max_line_size=limits.line_bytes,
            max_field_size=limits.field_bytes,
            max_headers=limits.fields,
            auto_decompress=False,
            lingering_time=1.0,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._table.abort_all()
        await self._server.shutdown(1.0)

    @property
    def count(self) -> int:
        """Return the number of connections."""
        return self._table.count

    async def accept(self, spawn: Spawn) -> None:
        """Accept until cancelled. At the limit, the connection that is idle longest is aborted."""
        while True:
            connection = await accepted(self._listener)
            if not self._table.has_room():
                self._turn_away(connection)
                continue
            begun = self._table.begin(self._server(), connection, self._limits.head_s, self._tls)
            if self._tls is None:
                await begun
            else:
                spawn(begun)  # a silent client must not delay the others
                # accept(2) does not yield while connections wait, and what was evicted is closed by
                # the loop: without a pause, a flood would take all descriptors.
                await asyncio.sleep(0)

    def _turn_away(self, connection: socket.socket) -> None:
        """Close a connection for which there is no room."""
        connection.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Handle a request whose head is complete."""
        self._table.busy(request.protocol)
        try:
            return await self._handler(request)
        finally:
            self._table.idle(request.protocol, self._limits.between_s)
