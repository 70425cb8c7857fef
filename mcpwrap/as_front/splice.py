"""Two-way byte copy between a server and its proxy, with bounded buffers and backpressure."""

import asyncio
import socket
import struct
from contextlib import suppress

# What a loopback socket delivers at once; a larger chunk is not faster, and uses memory.
CHUNK_BYTES = 128 * 1024
# An unread socket buffer grows to several MiB in the kernel, and a server may have 256 pairs.
_KERNEL_BYTES = 128 * 1024
_KEEPALIVE_S = 60  # detects a vanished half-closed peer, and keeps a silent one
_RESET = struct.pack("ii", 1, 0)  # socket(7), SO_LINGER: a close is a reset


def tune(connection: socket.socket) -> None:
    """Bound the buffers, send small messages at once, detect a vanished peer (tcp(7))."""
    connection.settimeout(0)
    for direction in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        connection.setsockopt(socket.SOL_SOCKET, direction, _KERNEL_BYTES)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_S)


async def give_way() -> None:
    """Let other tasks run: asyncio serves ready sockets at once, and a fast peer is always so."""
    await asyncio.sleep(0)


class Splice:
    """Splice of the connections to a server and to its proxy. It has no timeout."""

    def __init__(self, server: socket.socket, proxy: socket.socket, *, is_answered: bool) -> None:
        self._server = server
        self._proxy = proxy
        self._is_answered = is_answered  # the host has sent something
        self._has_server_ended = False
        self.was_left_unanswered = False  # the proxy's side ended first, without a byte

    async def run(self) -> None:
        """Copy bytes until both have ended. If one connection breaks, the other one is reset."""
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(self._to_proxy())
                directions.create_task(self._to_server())
        except* OSError:
            for end in (self._server, self._proxy):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    async def _to_proxy(self) -> None:
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(self._server, CHUNK_BYTES):
            await _send(self._proxy, data)
        self._has_server_ended = True
        _end(self._proxy)

    async def _to_server(self) -> None:
        while data := await self._from_proxy():
            self._is_answered = True
            await _send(self._server, data)
        _end(self._server)

    async def _from_proxy(self) -> bytes:
        try:
            data = await asyncio.get_running_loop().sock_recv(self._proxy, CHUNK_BYTES)
        except ConnectionError:
            self._note_end_of_proxy()
            raise
        if not data:
            self._note_end_of_proxy()
        return data

    def _note_end_of_proxy(self) -> None:
        self.was_left_unanswered = not self._is_answered and not self._has_server_ended


async def _send(target: socket.socket, data: bytes) -> None:
    """Send all of it: no more than one chunk is buffered in each direction."""
    await asyncio.get_running_loop().sock_sendall(target, data)
    await give_way()


def _end(target: socket.socket) -> None:
    with suppress(OSError):  # it is closed already
        target.shutdown(socket.SHUT_WR)
