"""Connection table of an HTTP server: limit, timers, eviction of the connection idle longest."""

import asyncio
import socket
import ssl
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiohttp.web import RequestHandler

_PAUSE_S = 0.5  # after accept(2) failed, for example without a free descriptor


async def accepted(listener: socket.socket) -> socket.socket:
    """Return the next connection of a socket that PID 1 created."""
    loop = asyncio.get_running_loop()
    listener.settimeout(0)
    while True:
        try:
            return (await loop.sock_accept(listener))[0]
        except OSError:
            await asyncio.sleep(_PAUSE_S)


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    transport: asyncio.Transport | None = None  # None until the TLS handshake is complete
    timer: asyncio.TimerHandle | None = None  # aborts the connection
    is_busy: bool = False

    def is_closed(self) -> bool:
        """Return whether it has no descriptor any more."""
        return self.socket.fileno() == -1


class ConnectionTable:
    """Connections from accept(2) to their end, by protocol; a busy one is not evicted."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._connections: dict[RequestHandler, _Connection] = {}  # last changed last

    @property
    def count(self) -> int:
        """Return the number of connections."""
        for protocol, connection in list(self._connections.items()):
            # One that closes counts: until its client lets it, it has a descriptor.
            if connection.is_closed():
                self.abort(protocol)
        return len(self._connections)

    def has_room(self) -> bool:
        """Return whether there is room for another; at the limit, evict the one idle longest."""
        while self.count >= self._limit:
            every = self._connections.items()
            idle = next((one for one, connection in every if not connection.is_busy), None)
            if idle is None:
                return False
            self.abort(idle)
        return True

    def begin(
        self,
        protocol: RequestHandler,
        connection: socket.socket,
        cut_off_in_s: float,
        tls: ssl.SSLContext | None = None,
    ) -> Coroutine[Any, Any, None]:
        """Add a connection at once. The caller runs the coroutine, which does the handshake."""
        self._connections[protocol] = _Connection(connection)
        self.idle(protocol, cut_off_in_s)
        return self._connect(protocol, connection, tls)

    async def _connect(
        self,
        protocol: RequestHandler,
        connection: socket.socket,
        tls: ssl.SSLContext | None,
    ) -> None:
        if protocol not in self._connections:  # evicted before its handshake began
            connection.close()
            return
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=tls)
        except OSError:  # also errors of ssl; the client has nothing to read
            self.abort(protocol)
            connection.close()
            return
        if protocol in self._connections:
            self._connections[protocol].transport = transport
        elif connection.fileno() != -1:
            transport.abort()

    def busy(self, protocol: RequestHandler, cut_off_in_s: float | None = None) -> None:
        """Keep a connection while a request is handled; without a time, for as long as it takes."""
        self._change(protocol, cut_off_in_s, is_busy=True)

    def idle(self, protocol: RequestHandler, cut_off_in_s: float) -> None:
        """Let a connection be evicted, and abort it after a time."""
        self._change(protocol, cut_off_in_s, is_busy=False)

    def _change(
        self, protocol: RequestHandler, cut_off_in_s: float | None, *, is_busy: bool
    ) -> None:
        connection = self._connections.pop(protocol, None)
        if connection is None:
            return  # aborted
        if connection.timer is not None:
            connection.timer.cancel()
        connection.is_busy = is_busy
        connection.timer = None
        if cut_off_in_s is not None:
            loop = asyncio.get_running_loop()
            connection.timer = loop.call_later(cut_off_in_s, self.abort, protocol)
        self._connections[protocol] = connection

    def abort(self, protocol: RequestHandler) -> None:
        """Abort a connection, or its handshake."""
        connection = self._connections.pop(protocol, None)
        if connection is None:
            return
        if connection.timer is not None:
            connection.timer.cancel()
        if connection.is_closed():
            return  # Python 3.11 raises for a TLS connection that has ended
        if connection.transport is not None:
            connection.transport.abort()
        # asyncio has a transport already while it does the handshake, and returns it later; and one
        # of TLS that closes ignores abort(). Both read the end of the connection now, and close it.
        with suppress(OSError):
            connection.socket.shutdown(socket.SHUT_RDWR)

    def abort_oldest(self) -> None:
        """Abort the connection that was changed before all others, busy or not."""
        self.abort(next(iter(self._connections)))

    def abort_all(self) -> None:
        """Abort every connection."""
        for protocol in list(self._connections):
            self.abort(protocol)
