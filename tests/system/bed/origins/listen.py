"""TCP listeners on every address: a connection is recorded, then served by its port's protocol."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress

from tests.system.bed import internet_map
from tests.system.bed.origins import names
from tests.system.bed.origins.certificates import Certificates
from tests.system.bed.origins.forward import Forward
from tests.system.bed.origins.http2 import Http2
from tests.system.bed.origins.record import CONNECTION, Connection, Seen

Protocol = Callable[[], asyncio.Protocol]
Serve = Callable[[socket.socket], Awaitable[None]]
BACKLOG = 4096


class Listeners:
    """All listening sockets of the namespace."""

    def __init__(
        self, seen: Seen, tasks: asyncio.TaskGroup, serve_by_port: dict[int, Serve]
    ) -> None:
        self._seen = seen
        self._tasks = tasks
        self._serve_by_port = serve_by_port
        self._sockets = [_listen(port) for port in serve_by_port]
        for sock in self._sockets:
            asyncio.get_running_loop().add_reader(sock, self._accept, sock)

    def accept(self) -> None:
        """Accept every waiting connection."""
        for sock in self._sockets:
            self._accept(sock)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, peer = listener.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue
            sock.settimeout(0)
            address, port = sock.getsockname()[:2]
            connection = Connection(plain(address), port, plain(peer[0]))
            self._seen.connections.append(connection)
            self._tasks.create_task(self._serve(sock, connection))

    async def _serve(self, sock: socket.socket, connection: Connection) -> None:
        CONNECTION.set(connection)
        # A client's error or missing step ends its own connection.
        with suppress(OSError, EOFError):
            await self._serve_by_port[connection.port](sock)


def plain(address: str) -> str:
    """Return an IPv4 address as such: the sockets are IPv6 sockets for both families."""
    return address.removeprefix("::ffff:")


def _listen(port: int) -> socket.socket:
    sock = socket.create_server(
        ("::", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
    )
    sock.settimeout(0)
    return sock


class AfterTls(asyncio.Protocol):
    """Protocol after the TLS handshake, by the server name and ALPN of the client."""

    def __init__(self, app: Protocol) -> None:
        self._app = app

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hand the connection over."""
        assert isinstance(transport, asyncio.Transport)
        protocol = self._choose(transport)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)

    def _choose(self, transport: asyncio.Transport) -> asyncio.Protocol:
        if CONNECTION.get().sni in (internet_map.MCP, internet_map.EXAMPLE_MCP):
            return Forward(internet_map.MCP_PORT)
        chosen = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        return Http2() if chosen == "h2" else self._app()


def by_port(certificates: Certificates, app: Protocol, known: names.Names) -> dict[int, Serve]:
    """Return the protocol of each port."""
    loop = asyncio.get_running_loop()

    async def http(sock: socket.socket) -> None:
        await loop.connect_accepted_socket(app, sock)

    async def tls(sock: socket.socket) -> None:
        context = certificates.context
        await loop.connect_accepted_socket(lambda: AfterTls(app), sock, ssl=context)

    async def dns(sock: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=sock)
        with closing(writer):
            await names.serve_tcp(known, reader, writer)

    return {
        internet_map.HTTP_PORT: http,
        internet_map.DNS_PORT: dns,
        **dict.fromkeys(internet_map.TLS_PORTS, tls),
        **dict.fromkeys(internet_map.ECHO_PORTS, _echo),
    }


async def _echo(sock: socket.socket) -> None:
    """Send the connection's address and port, then echo."""
    connection = CONNECTION.get()
    reader, writer = await asyncio.open_connection(sock=sock)
    with closing(writer):
        writer.write(f"bed {connection.address} {connection.port}\n".encode())
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
