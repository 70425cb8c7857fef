"""Listening sockets at one server's egress address, and its connection limit."""

import asyncio
import socket
import traceback
from collections.abc import Awaitable, Callable

from mcpwrap.as_front.dns_server import Dns
from mcpwrap.as_front.endpoint import MAX_CONNECTIONS, ServerEndpoint
from mcpwrap.as_front.event_log import EventLog
from mcpwrap.as_front.sni_connection import Connection
from mcpwrap.as_front.splice import give_way
from mcpwrap.linux.systemd.stderr_log import log_line

_BACKLOG = 256
_PAUSE_S = 0.5  # when no descriptor is left for another connection
Serve = Callable[[socket.socket], Awaitable[None]]


class AddressListener:
    """Three sockets of one server (TLS, DNS over UDP and TCP), and their connections."""

    def __init__(self, place: ServerEndpoint, events: EventLog) -> None:
        """Listen on all three sockets, or on none.

        Raises:
            OSError: another program has one of the ports, or the front may not bind it.
        """
        self.place = place
        self.connections = 0
        self._events = events
        self._dns = Dns(place, events)
        self._sockets: list[socket.socket] = []
        try:
            self._tls = self._bind(socket.SOCK_STREAM, place.ports.tls)
            self._dns_udp = self._bind(socket.SOCK_DGRAM, place.ports.dns)
            self._dns_tcp = self._bind(socket.SOCK_STREAM, place.ports.dns)
        except OSError:
            self._close()
            raise

    def _bind(self, kind: socket.SocketKind, port: int) -> socket.socket:
        bound = socket.socket(socket.AF_INET, kind)
        self._sockets.append(bound)
        bound.settimeout(0)
        if (
            kind == socket.SOCK_STREAM
        ):  # else connections from before a restart would block the port
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(self.place.at(port))
        if kind == socket.SOCK_STREAM:
            bound.listen(_BACKLOG)
        return bound

    def _close(self) -> None:
        for bound in self._sockets:
            bound.close()

    async def serve(self) -> None:
        """Serve until cancelled, which ends only the connections of this address."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._accept(self._tls, self._serve_tls, tasks))
                tasks.create_task(self._accept(self._dns_tcp, self._dns.serve_tcp, tasks))
                tasks.create_task(self._dns.serve_udp(self._dns_udp))
        finally:
            self._close()

    async def _accept(
        self, listener: socket.socket, serve: Serve, tasks: asyncio.TaskGroup
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                log_line(
                    f"{self.place.server}: cannot accept a connection: {error} [E-FRONT-ACCEPT]"
                )
                await asyncio.sleep(_PAUSE_S)
                continue
            if self.connections >= MAX_CONNECTIONS:
                connection.close()
                self._note_too_many()
            else:
                self.connections += 1
                tasks.create_task(self._hold(connection, serve))
            await give_way()

    def _note_too_many(self) -> None:
        self._events.note(
            self.place.server, "too-many", "", f"{MAX_CONNECTIONS} connections at a time"
        )

    async def _serve_tls(self, connection: socket.socket) -> None:
        await Connection(connection, self.place, self._events).run()

    async def _hold(self, connection: socket.socket, serve: Serve) -> None:
        try:
            with connection:
                await serve(connection)
        except OSError:
            return  # the server has closed the connection
        except Exception:  # noqa: BLE001 - a bug at one server must not end the others
            log_line(f"a bug in mcpwrap-front: {traceback.format_exc()}")
        finally:
            self.connections -= 1
