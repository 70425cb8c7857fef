"""Connection to port 443: SNI of the ClientHello, CONNECT to the proxy, splice, TLS alerts."""

import asyncio
import os
import socket
from contextlib import suppress
from enum import IntEnum
from typing import assert_never

from mcpwrap.as_front.endpoint import ServerEndpoint
from mcpwrap.as_front.event_log import EventLog
from mcpwrap.as_front.splice import CHUNK_BYTES, Splice, give_way, tune
from mcpwrap.core.egress import http_connect, tls_client_hello
from mcpwrap.core.egress.tls_client_hello import HelloIncomplete, NoName, NotTls, ServerName

HELLO_S = 10.0
PROXY_S = 90.0  # Squid tries a host for 60 s (connect_timeout), and then responds
_LINGER_S = 1.0  # for the server to read an alert


class Alert(IntEnum):
    """TLS alert codes of RFC 8446 section 6."""

    ACCESS_DENIED = 49
    INTERNAL_ERROR = 80
    MISSING_EXTENSION = 109  # section 9.2: for a ClientHello without server_name


class Connection:
    """TLS connection of one server. If the server breaks it, OSError is raised."""

    def __init__(self, server: socket.socket, place: ServerEndpoint, events: EventLog) -> None:
        self._server = server
        self._place = place
        self._events = events
        self._from_server = bytearray()

    async def run(self) -> None:
        """Connect the server to the host that it names, if its proxy allows it."""
        tune(self._server)
        name = self._place.server
        match await self._hello():
            case ServerName(host):
                await self._reach(host)
            case NoName(why, shown):
                self._events.note(name, "no-sni", shown, why)
                await self._alert(Alert.MISSING_EXTENSION)
            case NotTls(why):
                self._events.note(name, "not-tls", "", why)
            case None:
                self._events.note(name, "closed-early", "", "before its ClientHello was whole")
            case other:
                assert_never(other)

    async def _hello(self) -> ServerName | NoName | NotTls | None:
        """Return the host of the ClientHello, or what is wrong; None if the server ends first."""
        try:
            async with asyncio.timeout(HELLO_S):
                return await self._read_hello()
        except TimeoutError:
            return NotTls(f"sent no whole ClientHello in {HELLO_S:.0f} s")
        except ConnectionError:
            return None

    async def _read_hello(self) -> ServerName | NoName | NotTls | None:
        loop = asyncio.get_running_loop()
        wanted_bytes = 1
        while chunk := await loop.sock_recv(self._server, CHUNK_BYTES):
            self._from_server += chunk
            if len(self._from_server) < wanted_bytes:
                continue
            match tls_client_hello.read(self._from_server):
                case HelloIncomplete(total_bytes):
                    wanted_bytes = total_bytes
                case ServerName() | NoName() | NotTls() as found:
                    return found
                case other:
                    assert_never(other)
        return None

    async def _reach(self, host: str) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as proxy:
            tune(proxy)
            match await self._request(proxy, host):
                case http_connect.TunnelEstablished(rest):
                    await self._splice(proxy, host, rest)
                case http_connect.TunnelRefused(status, reason) as denied:
                    by_rule = denied.is_by_rule()
                    self._note_refused(host, f"{status} {reason}".rstrip())
                    await self._alert(Alert.ACCESS_DENIED if by_rule else Alert.INTERNAL_ERROR)
                case str(problem):
                    self._note_refused(host, f"the proxy cannot be asked: {problem}")
                    await self._alert(Alert.INTERNAL_ERROR)
                case other:
                    assert_never(other)

    def _note_refused(self, host: str, why: str) -> None:
        self._events.note(self._place.server, "refused", host, why)

    async def _request(
        self, proxy: socket.socket, host: str
    ) -> http_connect.TunnelEstablished | http_connect.TunnelRefused | str:
        """Return the response of the proxy, or why there was no response."""
        try:
            async with asyncio.timeout(PROXY_S):
                return await self._read_reply(proxy, host)
        except TimeoutError:
            return f"no answer in {PROXY_S:.0f} s"
        except OSError as error:
            return os.strerror(error.errno) if error.errno else "the connection broke"

    async def _read_reply(
        self, proxy: socket.socket, host: str
    ) -> http_connect.TunnelEstablished | http_connect.TunnelRefused | str:
        loop = asyncio.get_running_loop()
        await loop.sock_connect(proxy, self._place.at(self._place.ports.proxy))
        await loop.sock_sendall(proxy, http_connect.request(host))
        untrusted = b""
        while chunk := await loop.sock_recv(proxy, http_connect.MAX_HEAD_BYTES):
            untrusted += chunk
            match http_connect.reply(untrusted):
                case http_connect.HeadIncomplete():
                    continue
                case http_connect.TunnelEstablished() | http_connect.TunnelRefused() as reply:
                    return reply
                case http_connect.NotHttp():
                    return "its answer is no HTTP"
                case other:
                    assert_never(other)
        return "it closed the connection"

    async def _splice(self, proxy: socket.socket, host: str, from_host: bytes) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(proxy, self._from_server)
        self._from_server = bytearray()  # a connection may last for days
        await loop.sock_sendall(self._server, from_host)
        splice = Splice(self._server, proxy, is_answered=bool(from_host))
        await splice.run()
        if splice.was_left_unanswered:
            why = "by the proxy or the host, before a byte of an answer"
            self._events.note(self._place.server, "closed-early", host, why)

    async def _alert(self, alert: Alert) -> None:
        """Send a TLS alert (RFC 8446 section 6.2), and wait until it is read before the close.

        A close with unread bytes is a reset, which overtakes the alert.
        """
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._server, bytes([21, 3, 3, 0, 2, 2, alert]))
        self._server.shutdown(socket.SHUT_WR)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                while await loop.sock_recv(self._server, CHUNK_BYTES):
                    await give_way()
