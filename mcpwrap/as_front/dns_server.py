"""Sinkhole resolver on port 53 of one address: it answers each host with that address."""

import asyncio
import socket
from contextlib import suppress

from mcpwrap.as_front.endpoint import ServerEndpoint
from mcpwrap.as_front.event_log import EventLog
from mcpwrap.as_front.splice import give_way
from mcpwrap.core.egress import dns

_IDLE_S = 10.0  # RFC 7766 section 6.2.3 does not set a value
_PAUSE_S = 0.1


class Dns:
    """Sinkhole resolver of one server. It logs the names that the server queries."""

    def __init__(self, place: ServerEndpoint, events: EventLog) -> None:
        self._place = place
        self._events = events

    def _answer(self, untrusted: bytes) -> bytes:
        """Return the response packet. An empty one is not sent."""
        answer = dns.answer(untrusted, self._place.address)
        if answer is None:
            return b""
        if answer.asked:
            detail = "" if answer.is_host else "no name of a host"
            self._events.asked(self._place.server, answer.asked.lower(), detail)
        return answer.packet

    async def serve_udp(self, bound: socket.socket) -> None:
        """Answer datagrams, one at a time. If a response finds no room, the client retries."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                query, peer = await loop.sock_recvfrom(bound, dns.MAX_QUERY_BYTES)
            except OSError:  # an error of an earlier response, or no memory
                await asyncio.sleep(_PAUSE_S)
                continue
            with suppress(OSError):
                if packet := self._answer(query):
                    bound.sendto(packet, peer)
            await give_way()

    async def serve_tcp(self, connection: socket.socket) -> None:
        """Answer queries until the server closes the connection, or is idle for 10 s (RFC 7766)."""
        with suppress(TimeoutError, EOFError):
            while True:
                async with asyncio.timeout(_IDLE_S):
                    size = int.from_bytes(await _exactly(connection, 2), "big")
                    if size > dns.MAX_QUERY_BYTES:
                        return
                    packet = self._answer(await _exactly(connection, size))
                    await _send(connection, packet)


async def _exactly(connection: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        chunk = await asyncio.get_running_loop().sock_recv(connection, size - len(got))
        if not chunk:
            raise EOFError
        got += chunk
    return got


async def _send(connection: socket.socket, packet: bytes) -> None:
    if packet:
        framed = len(packet).to_bytes(2, "big") + packet
        await asyncio.get_running_loop().sock_sendall(connection, framed)
    await give_way()
