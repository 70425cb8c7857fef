"""HTTP connections of the agent: limits, and an error for those beyond."""

import asyncio
import socket
from collections import deque
from contextlib import suppress
from dataclasses import dataclass

from mcpwrap.http_server.persistent_connections import (
    ConnectionLimits,
    Handler,
    PersistentConnections,
)

_TO_READ_S = 1.0
_MAX_TURNED_AWAY = 16
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\n"
    b"Retry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConnectionLimits(ConnectionLimits):
    """Limits of connections, which only one account can open."""

    connections: int = 128
    line_bytes: int = 2048
    field_bytes: int = 16 * 1024  # a URI of 8192 characters as base64, in Mcp-Name
    fields: int = 128
    body_s: float = 60.0


class HttpConnections(PersistentConnections):
    """Connections that are refused with an HTTP response when all are busy."""

    def __init__(
        self, listener: socket.socket, handler: Handler, limits: HttpConnectionLimits
    ) -> None:
        super().__init__(listener, handler, limits)
        self._turned_away: deque[socket.socket] = deque()

    async def __aexit__(self, *_: object) -> None:
        for connection in self._turned_away:
            connection.close()
        await super().__aexit__()

    def _turn_away(self, connection: socket.socket) -> None:
        """Send status 503, and close after a pause: an immediate close would reset the response."""
        with suppress(OSError):
            connection.send(_FULL)
            connection.shutdown(socket.SHUT_WR)
        self._turned_away.append(connection)
        asyncio.get_running_loop().call_later(_TO_READ_S, connection.close)
        if len(self._turned_away) > _MAX_TURNED_AWAY:
            self._turned_away.popleft().close()
