"""HTTP connections: limit, timeouts, and eviction of the oldest."""

import asyncio
import socket
from dataclasses import dataclass
from typing import Self

from aiohttp import web

_PAUSE_S = 0.5  # when no descriptor is left for another connection
_MAX_LINE_BYTES = 2048
_MAX_FIELD_BYTES = 4096  # the browser also sends the cookies of other programs at 127.0.0.1
_MAX_FIELDS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConnectionLimits:
    """Limits of connections; any account on the machine can open one."""

    connections: int = 128
    head_s: float = 10.0
    whole_s: float = 60.0  # one request and its response; the gate takes 30 at most
    live_s: float = 900.0  # of an event stream; the browser then reconnects


class WebConnections:
    """Connection table, and accept loop on PID 1's socket. A connection is for one request."""

    def __init__(
        self, listener: socket.socket, application: web.Application, limits: WebConnectionLimits
    ) -> None:
        self._listener = listener
        self._limits = limits
        self._ends: dict[asyncio.BaseTransport, asyncio.TimerHandle] = {}
        self._lasting: set[asyncio.BaseTransport] = set()
        self._runner = web.AppRunner(
            application,
            access_log=None,
            keepalive_timeout=limits.head_s,
            max_line_size=_MAX_LINE_BYTES,
            max_field_size=_MAX_FIELD_BYTES,
            max_headers=_MAX_FIELDS,
            auto_decompress=False,
            lingering_time=1.0,
            shutdown_timeout=1.0,
        )

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        return self

    async def __aexit__(self, *_: object) -> None:
        for transport in list(self._ends):
            self._abort(transport)
        await self._runner.cleanup()

    @property
    def count(self) -> int:
        """Return the number of open connections."""
        self._forget_closed()
        return len(self._ends)

    async def accept(self) -> None:
        """Accept until cancelled. At the limit the oldest connection is closed.

        So silent connections cannot keep others out.
        """
        loop, server = asyncio.get_running_loop(), self._runner.server
        if server is None:
            raise RuntimeError("used outside of its context")
        self._listener.settimeout(0)
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError:
                await asyncio.sleep(_PAUSE_S)
                continue
            if self.count >= self._limits.connections:
                self._abort(self._oldest())
            transport, _ = await loop.connect_accepted_socket(server, connection)
            self._ends[transport] = loop.call_later(self._limits.whole_s, self._abort, transport)

    def _oldest(self) -> asyncio.BaseTransport:
        """Return the connection to evict: an event stream only if all are."""
        return next((one for one in self._ends if one not in self._lasting), next(iter(self._ends)))

    def let_last(self, transport: asyncio.BaseTransport | None) -> None:
        """Give a connection the timeout of an event stream."""
        if transport in self._ends:
            self._ends.pop(transport).cancel()
            loop = asyncio.get_running_loop()
            self._ends[transport] = loop.call_later(self._limits.live_s, self._abort, transport)
            self._lasting.add(transport)

    def _forget_closed(self) -> None:
        for transport in [one for one in self._ends if one.is_closing()]:
            self._ends.pop(transport).cancel()
            self._lasting.discard(transport)

    def _abort(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()
        self._forget_closed()
