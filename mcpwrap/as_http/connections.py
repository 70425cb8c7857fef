"""HTTP connections: limit, timeouts, and eviction of the connection that is idle longest."""

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from aiohttp import web

_TO_READ_S = 1.0
_MAX_TURNED_AWAY = 16
_PAUSE_S = 0.5  # after accept(2) failed, for example without a free descriptor
_MAX_LINE_BYTES = 2048
_MAX_FIELD_BYTES = 16 * 1024  # a URI of 8192 characters as base64, in Mcp-Name
_MAX_FIELDS = 128
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\n"
    b"Retry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConnectionLimits:
    """Limits of connections, which only one account can open."""

    connections: int = 128
    head_s: float = 10.0  # until the first head of a connection is complete
    between_s: float = 75.0  # from a response to the next complete head; agents keep connections
    body_s: float = 60.0


class HttpConnections:
    """Connection table, and accept loop on the socket that PID 1 created."""

    def __init__(
        self, listener: socket.socket, handler: Handler, limits: HttpConnectionLimits
    ) -> None:
        self._listener = listener
        self._limits = limits
        self._handler = handler
        # By connection: the timer that aborts it; None while a request is handled.
        self._ends: dict[asyncio.BaseTransport, asyncio.TimerHandle | None] = {}
        self._turned_away: deque[socket.socket] = deque()
        self._server = web.Server(
            self._handle,
            handler_cancellation=True,  # a closed connection cancels its request at once
            access_log=None,
            keepalive_timeout=limits.between_s,
            max_line_size=_MAX_LINE_BYTES,
            max_field_size=_MAX_FIELD_BYTES,
            max_headers=_MAX_FIELDS,
            auto_decompress=False,
            lingering_time=1.0,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for transport in list(self._ends):
            self._abort(transport)
        for connection in self._turned_away:
            connection.close()
        await self._server.shutdown(1.0)

    @property
    def count(self) -> int:
        """Return the number of connections."""
        for transport in [one for one in self._ends if one.is_closing()]:
            self._time(transport, None)
            del self._ends[transport]
        return len(self._ends)

    async def accept(self) -> None:
        """Accept until cancelled. At the limit, the connection that is idle longest is aborted."""
        loop = asyncio.get_running_loop()
        self._listener.settimeout(0)
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError:
                await asyncio.sleep(_PAUSE_S)
                continue
            if not self._has_room():
                self._turn_away(connection)
                continue
            transport, _ = await loop.connect_accepted_socket(self._server, connection)
            self._ends[transport] = None
            self._time(transport, self._limits.head_s)

    def _turn_away(self, connection: socket.socket) -> None:
        """Send status 503, and close after a pause: an immediate close would reset the response."""
        with suppress(OSError):
            connection.send(_FULL)
            connection.shutdown(socket.SHUT_WR)
        self._turned_away.append(connection)
        asyncio.get_running_loop().call_later(_TO_READ_S, connection.close)
        if len(self._turned_away) > _MAX_TURNED_AWAY:
            self._turned_away.popleft().close()

    def _has_room(self) -> bool:
        if self.count < self._limits.connections:
            return True
        idle = next((one for one, timer in self._ends.items() if timer is not None), None)
        if idle is not None:
            self._abort(idle)
        return idle is not None

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Handle a request whose head is complete."""
        transport = request.transport
        self._time(transport, None)
        try:
            return await self._handler(request)
        finally:
            self._time(transport, self._limits.between_s)

    def _time(self, transport: asyncio.BaseTransport | None, cut_off_in_s: float | None) -> None:
        """Set the timer that aborts a connection; without a time, remove it."""
        if transport is None or transport not in self._ends:
            return
        timer = self._ends.pop(transport)
        if timer is not None:
            timer.cancel()
        if cut_off_in_s is not None and not transport.is_closing():
            loop = asyncio.get_running_loop()
            timer = loop.call_later(cut_off_in_s, self._abort, transport)
            self._ends[transport] = timer  # at the end: idle for the shortest time
        else:
            self._ends[transport] = None

    def _abort(self, transport: asyncio.BaseTransport) -> None:
        self._time(transport, None)
        self._ends.pop(transport, None)
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()
