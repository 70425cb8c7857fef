"""HTTP connections: limit, timeouts, and eviction of the oldest."""

import socket
from dataclasses import dataclass
from typing import Self

from aiohttp import web

from mcpwrap.http_server.connection_table import ConnectionTable, accepted

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
        self._table = ConnectionTable(limits.connections)
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
        self._table.abort_all()
        await self._runner.cleanup()

    @property
    def count(self) -> int:
        """Return the number of open connections."""
        return self._table.count

    async def accept(self) -> None:
        """Accept until cancelled. At the limit the oldest connection is closed.

        So silent connections cannot keep others out. An event stream is closed only if all are.
        """
        server = self._runner.server
        if server is None:
            raise RuntimeError("used outside of its context")
        while True:
            connection = await accepted(self._listener)
            if not self._table.has_room():
                self._table.abort_oldest()
            await self._table.begin(server(), connection, self._limits.whole_s)

    def let_last(self, protocol: web.RequestHandler) -> None:
        """Give a connection the timeout of an event stream."""
        self._table.busy(protocol, self._limits.live_s)
