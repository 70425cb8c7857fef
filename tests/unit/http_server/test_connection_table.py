"""Connections that a table evicts, and those that it keeps."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from mcpwrap.http_server.connection_table import ConnectionTable, accepted
from tests.shared import pace

LONG_S = 3600.0
MORE_THAN_BUFFERS_HOLD = 32 * 1024**2
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
Protocol = web.RequestHandler
Handshake = Coroutine[Any, Any, None]


class Clients:
    """Table, and clients of its connections by their protocols."""

    def __init__(self, limit: int) -> None:
        self.table = ConnectionTable(limit)
        self.handled = 0
        self._server = web.Server(self._respond)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: dict[Protocol, socket.socket] = {}
        self.connections: dict[Protocol, socket.socket] = {}  # the ends of the server

    async def _respond(self, _: web.BaseRequest) -> web.StreamResponse:
        self.handled += 1
        return web.Response()

    async def begin(self, cut_off_in_s: float = LONG_S) -> tuple[Protocol, Handshake]:
        protocol = self._server()
        address = self._listener.getsockname()
        self._sockets[protocol] = socket.create_connection(address, timeout=pace.WAIT_S)
        self.connections[protocol] = connection = await accepted(self._listener)
        return protocol, self.table.begin(protocol, connection, cut_off_in_s)

    async def connect(self) -> Protocol:
        protocol, handshake = await self.begin()
        await handshake
        return protocol

    async def is_served(self, protocol: Protocol) -> bool:
        """Return whether a request is answered; if not, the connection is closed."""
        received = b""
        with suppress(ConnectionError):
            self.send(protocol)
            received = await asyncio.to_thread(self._sockets[protocol].recv, 4096)
        assert received.startswith(b"HTTP/1.1 200 ") or not received
        return bool(received)

    def send(self, protocol: Protocol) -> None:
        self._sockets[protocol].sendall(REQUEST)

    async def until_closed(self, protocol: Protocol) -> None:
        connection = self.connections[protocol]
        await asyncio.to_thread(pace.until, lambda: connection.fileno() == -1)

    def read_all(self, protocol: Protocol) -> None:
        while self._sockets[protocol].recv(1024**2):
            pass

    def close(self) -> None:
        for one in (*self._sockets.values(), self._listener):
            one.close()


def play(story: Callable[[Clients], Awaitable[None]], limit: int) -> None:
    async def run() -> None:
        clients = Clients(limit)
        try:
            await story(clients)
        finally:
            clients.table.abort_all()
            clients.close()

    asyncio.run(run())


def test_the_connection_idle_longest_is_evicted() -> None:
    async def story(clients: Clients) -> None:
        first, second = await clients.connect(), await clients.connect()
        clients.table.busy(first)
        clients.table.idle(first, LONG_S)
        assert clients.table.has_room()
        assert not await clients.is_served(second)
        assert await clients.is_served(first)

    play(story, limit=2)


def test_a_busy_connection_is_not_evicted_until_it_is_idle() -> None:
    async def story(clients: Clients) -> None:
        busy = await clients.connect()
        clients.table.busy(busy)
        assert not clients.table.has_room()
        assert await clients.is_served(busy)
        clients.table.idle(busy, LONG_S)
        assert clients.table.has_room()
        assert not await clients.is_served(busy)

    play(story, limit=1)


@pytest.mark.parametrize("cut_off_in_s", [0.0, None])
def test_a_busy_connection_may_have_a_time(cut_off_in_s: float | None) -> None:
    async def story(clients: Clients) -> None:
        busy = await clients.connect()
        clients.table.busy(busy, cut_off_in_s)
        assert await clients.is_served(busy) == (cut_off_in_s is None)

    play(story, limit=1)


@pytest.mark.parametrize("is_busy", [True, False])
def test_a_busy_connection_loses_the_time_that_it_had(*, is_busy: bool) -> None:
    async def story(clients: Clients) -> None:
        protocol, handshake = await clients.begin(cut_off_in_s=0.0)
        if is_busy:
            clients.table.busy(protocol)
        await handshake
        assert await clients.is_served(protocol) == is_busy

    play(story, limit=1)


def test_the_oldest_of_busy_connections_can_be_aborted() -> None:
    async def story(clients: Clients) -> None:
        first, second = await clients.connect(), await clients.connect()
        clients.table.busy(first)
        clients.table.busy(second)
        clients.table.abort_oldest()
        assert not await clients.is_served(first)
        assert await clients.is_served(second)

    play(story, limit=2)


@pytest.mark.parametrize("is_evicted", [True, False])
def test_a_connection_can_be_evicted_before_its_handshake(*, is_evicted: bool) -> None:
    async def story(clients: Clients) -> None:
        protocol, handshake = await clients.begin()
        if is_evicted:
            assert clients.table.has_room()
        await handshake
        assert clients.table.count == (0 if is_evicted else 1)
        assert await clients.is_served(protocol) != is_evicted

    play(story, limit=1)


@pytest.mark.parametrize("is_evicted", [True, False])
def test_a_request_on_a_connection_evicted_during_its_handshake_is_not_handled(
    *, is_evicted: bool
) -> None:
    async def story(clients: Clients) -> None:
        protocol, handshake = await clients.begin()
        clients.send(protocol)
        connecting = asyncio.create_task(handshake)
        await asyncio.sleep(0)  # it has begun
        if is_evicted:
            assert clients.table.has_room()
        await connecting
        if is_evicted:
            await clients.until_closed(protocol)
        else:
            await asyncio.to_thread(pace.until, lambda: clients.handled > 0)
        assert clients.handled == (0 if is_evicted else 1)

    play(story, limit=1)


@pytest.mark.parametrize("is_evicted", [True, False])
def test_a_connection_that_closes_counts_until_it_is_closed(*, is_evicted: bool) -> None:
    """Its client decides when, unless it is evicted: it has not read what was sent to it."""

    async def story(clients: Clients) -> None:
        protocol = await clients.connect()
        assert protocol.transport is not None
        protocol.transport.write(b"x" * MORE_THAN_BUFFERS_HOLD)
        protocol.transport.close()
        assert clients.table.count == 1
        if is_evicted:
            assert clients.table.has_room()
        else:
            await asyncio.to_thread(clients.read_all, protocol)
        await clients.until_closed(protocol)
        assert clients.table.count == 0

    play(story, limit=1)
