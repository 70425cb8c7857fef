"""HTTP connections of one socket: limit, timeouts, TLS, and eviction of the longest idle one."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

from aiohttp import web

from mcpwrap.as_worker.runs import Spawn

_PAUSE_S = 0.5  # after accept(2) failed, for example without a free descriptor
_MAX_LINE_BYTES = 1024
_MAX_FIELD_BYTES = 4096
_MAX_FIELDS = 64
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConnectionLimits:
    """Limits of the connections of one socket."""

    connections: int = 1024  # more than the places of several large pools
    head_s: float = 10.0  # until the first head of a connection is complete, TLS included
    between_s: float = 75.0  # from a reply to the next complete head


class WorkerConnections:
    """Connection table, and accept loop on a socket that PID 1 created.

    A client that closes its connection, or only its sending half, ends its run at once.
    """

    def __init__(
        self,
        listener: socket.socket,
        handler: Handler,
        limits: WorkerConnectionLimits,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listener = listener
        self._handler = handler
        self._limits = limits
        self._tls = tls
        self._handshakes = 0
        # By connection: the timer that aborts it; None while a request is handled.
        self._timers: dict[asyncio.BaseTransport, asyncio.TimerHandle | None] = {}
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
        for transport in list(self._timers):
            self._abort(transport)
        await self._server.shutdown(1.0)

    async def accept(self, spawn: Spawn) -> None:
        """Accept until cancelled. At the limit, the connection that is idle longest is aborted."""
        loop = asyncio.get_running_loop()
        self._listener.settimeout(0)
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError:
                await asyncio.sleep(_PAUSE_S)
                continue
            if self._has_room():
                self._handshakes += 1
                spawn(self._begin(connection))
            else:
                connection.close()

    async def _begin(self, connection: socket.socket) -> None:
        """Do the TLS handshake, if any: a silent client must not delay the others."""
        loop = asyncio.get_running_loop()
        timeout_s = None if self._tls is None else self._limits.head_s
        try:
            transport, _ = await loop.connect_accepted_socket(
                self._server, connection, ssl=self._tls, ssl_handshake_timeout=timeout_s
            )
        except (OSError, TimeoutError):  # also errors of ssl; the client has nothing to read
            connection.close()
            return
        finally:
            self._handshakes -= 1
        if transport not in self._timers:  # else its first request has begun already
            self._timers[transport] = None
            self._time(transport, self._limits.head_s)

    def _has_room(self) -> bool:
        for transport in [one for one in self._timers if one.is_closing()]:
            self._time(transport, None)
            del self._timers[transport]
        if len(self._timers) + self._handshakes < self._limits.connections:
            return True
        idle = next((one for one, timer in self._timers.items() if timer is not None), None)
        if idle is not None:
            self._abort(idle)
        return idle is not None

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Handle a request whose head is complete."""
        transport = request.transport
        if transport is not None:
            self._timers.setdefault(transport, None)
        self._time(transport, None)
        try:
            return await self._handler(request)
        finally:
            self._time(transport, self._limits.between_s)

    def _time(self, transport: asyncio.BaseTransport | None, cut_off_in_s: float | None) -> None:
        """Set the timer that aborts a connection; without a time, remove it."""
        if transport is None or transport not in self._timers:
            return
        timer = self._timers.pop(transport)
        if timer is not None:
            timer.cancel()
        if cut_off_in_s is not None and not transport.is_closing():
            loop = asyncio.get_running_loop()
            timer = loop.call_later(cut_off_in_s, self._abort, transport)
            self._timers[transport] = timer  # at the end: idle for the shortest time
        else:
            self._timers[transport] = None

    def _abort(self, transport: asyncio.BaseTransport) -> None:
        self._time(transport, None)
        self._timers.pop(transport, None)
        # Python 3.11 raises for a TLS connection that has ended.
        if isinstance(transport, asyncio.WriteTransport) and not transport.is_closing():
            transport.abort()
