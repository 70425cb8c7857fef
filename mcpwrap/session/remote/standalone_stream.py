"""Standalone streams of messages from the server (SSE), with reconnect, in the handshake era."""

import asyncio
from contextlib import suppress

from aiohttp import ClientResponse
from yarl import URL

from mcpwrap.core.http.sse import SseEvent
from mcpwrap.core.http.upstream_errors import RemoteError, SessionGoneError
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.session.remote import response_body
from mcpwrap.session.remote.http_client import EVENT_STREAM, kind_of
from mcpwrap.session.remote.response_body import Cursor
from mcpwrap.session.remote.upstream import Upstream, may_pass, pause_s

_MAX_TRIES = 10  # after these, the pauses grow no longer
_ENDPOINT_S = 30.0


async def listen(upstream: Upstream) -> None:
    """Read the standalone stream of Streamable HTTP as long as the server has one."""
    cursor, tries = Cursor(), 0
    while True:
        before = cursor.last_id
        try:
            has_brought = await _listen_once(upstream, cursor)
        except RemoteError as why:
            if not may_pass(why):
                return  # 405: the server has no such stream
            has_brought = False
        is_new = has_brought or cursor.last_id != before
        tries = 0 if is_new else min(tries + 1, _MAX_TRIES)
        await asyncio.sleep(pause_s(cursor, tries))


async def _listen_once(upstream: Upstream, cursor: Cursor) -> bool:
    """Read the stream until it ends; return whether an event came."""
    has_brought = False
    headers = upstream.conversation.session_headers()
    if cursor.last_id:
        headers["Last-Event-ID"] = cursor.last_id

    async def take(event: SseEvent) -> None:
        nonlocal has_brought
        has_brought = True
        await _take(upstream, event)

    async with upstream.client.listen(headers) as answer:
        # Without a stream some servers return 404, others 405: only a POST shows a lost session.
        _expect_stream(answer)
        await response_body.events(answer, take, cursor)
    return has_brought


def _expect_stream(answer: ClientResponse) -> None:
    if answer.status != 200 or kind_of(answer) != EVENT_STREAM:
        raise RemoteError(
            "The remote server has no event stream [E-REMOTE-RESPONSE]",
            status=max(answer.status, 400),
        )


async def _take(upstream: Upstream, event: SseEvent) -> None:
    if event.kind != "message" or not event.data:
        return
    try:
        await upstream.take(event.data, None)
    except RemoteError as why:
        log_line(f"on the standalone stream of the session: {why}")


class HttpSseStream:
    """Event stream of HTTP+SSE (2024-11-05), which carries all messages of the server."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._has_endpoint = asyncio.Event()
        self._refusal: RemoteError | None = None

    async def wait(self) -> None:
        """Wait until the server has named the URL for messages.

        Raises:
            RemoteError: it does not use HTTP+SSE, or names a URL at another server.
        """
        try:
            async with asyncio.timeout(_ENDPOINT_S):
                await self._has_endpoint.wait()
        except TimeoutError:
            raise RemoteError(
                "The remote server has not named a URL for messages [E-REMOTE-RESPONSE]"
            ) from None
        if self._refusal:
            raise self._refusal

    async def run(self) -> None:
        """Read the stream.

        Raises:
            SessionGoneError: the stream has ended, and the session with it.
        """
        try:
            async with self._upstream.client.listen({}) as answer:
                _expect_stream(answer)
                await response_body.events(answer, self._take, Cursor())
        except RemoteError as why:
            self._refusal = self._refusal or why
        was_in_use = self._upstream.post_to is not None
        self._refusal = self._refusal or SessionGoneError()
        self._has_endpoint.set()
        if was_in_use:
            raise SessionGoneError

    async def _take(self, event: SseEvent) -> None:
        if event.kind != "endpoint":
            await _take(self._upstream, event)
        elif self._upstream.post_to is None:
            self._upstream.post_to = self._endpoint(event.data)
            self._has_endpoint.set()

    def _endpoint(self, data: bytes) -> URL:
        here = self._upstream.client.url
        with suppress(ValueError):
            there = here.join(URL(data.decode()))
            if there.origin() == here.origin():
                return there
        raise RemoteError(
            "The remote server names a URL at another server for messages [E-REMOTE-RESPONSE]"
        )
