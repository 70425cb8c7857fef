"""Exchange with a remote server: one message from its POST to its response, with resumption."""

import asyncio

from aiohttp import ClientResponse
from yarl import URL

from mcpwrap.core.http import upstream_errors
from mcpwrap.core.http.upstream_errors import RemoteError, SessionGoneError
from mcpwrap.core.http.upstream_session import Exchange, UpstreamSession
from mcpwrap.session.remote import response_body
from mcpwrap.session.remote.http_client import UpstreamClient
from mcpwrap.session.remote.line_io import LineWriter
from mcpwrap.session.remote.response_body import Cursor

_NEVER = "The remote server has accepted the request, but sends no response [E-REMOTE-RESPONSE]"
_TRIES = 6  # in a row without an event: with a first pause of one second, two minutes
_MAX_PAUSE_S = 60.0
_LINGER_S = 0.5  # after the last response: reading a stream to its end allows connection reuse
_MAY_PASS = frozenset({408, 425, 429})


class Upstream:
    """Remote server, and all exchanges with it."""

    def __init__(
        self, client: UpstreamClient, conversation: UpstreamSession, output: LineWriter
    ) -> None:
        self.client = client
        self.conversation = conversation
        self.post_to: URL | None = None  # in HTTP+SSE, where one stream has all responses
        self._output = output
        self._answered: dict[Exchange, asyncio.Event] = {}

    async def take(self, text: bytes, exchange: Exchange | None) -> None:
        """Pass on a message from the stream of an exchange, or from the standalone stream.

        Raises:
            RemoteError: it is not a message.
        """
        await self._output.write(self.conversation.received(text, exchange))
        for waiting, answered in self._answered.items():
            if not waiting.waiting:
                answered.set()

    async def fail(self, exchange: Exchange, why: RemoteError) -> None:
        """Answer the unanswered requests of an exchange with an error."""
        await self._output.write(self.conversation.fail(exchange, why))

    async def say(self, lines: list[bytes]) -> None:
        """Pass on lines of the upstream session."""
        await self._output.write(lines)

    async def fail_all(self, why: RemoteError) -> None:
        """Answer all unanswered requests with an error."""
        await self._output.write(self.conversation.fail_all(why))

    async def post(self, exchange: Exchange) -> None:
        """Send a message, and pass on the responses to it.

        Raises:
            RemoteError: a request in it got no response.
            SessionGoneError: the session has ended, and no request will get a response.
        """
        if self.post_to:
            await self._post_to(self.post_to, exchange)
            return
        cursor = Cursor()
        headers = self.conversation.headers(exchange.line)
        async with self.client.post(exchange.line.body, headers) as answer:
            await self.expect_taken(answer, exchange)
            if not exchange.waiting:
                return
            session_id = answer.headers.get("Mcp-Session-Id", "")
            self.conversation.see_session(exchange.line, session_id)
            await self._follow(answer, exchange, cursor)
        if exchange.waiting and cursor.last_id and not exchange.is_modern:
            await self._output.write(self.conversation.cut_off(exchange))
            await self._resume(exchange, cursor)
        if exchange.waiting:
            raise RemoteError(upstream_errors.NO_ANSWER)

    async def _post_to(self, url: URL, exchange: Exchange) -> None:
        """Do the same by HTTP+SSE."""
        self._answered[exchange] = answered = asyncio.Event()
        try:
            headers = self.conversation.headers(exchange.line)
            async with self.client.post(exchange.line.body, headers, url) as answer:
                await self.expect_taken(answer, exchange)
            if exchange.waiting:
                await answered.wait()
        finally:
            del self._answered[exchange]

    async def expect_taken(self, answer: ClientResponse, exchange: Exchange | None) -> None:
        """Pass on the message of an HTTP error, if it has one for a waiting request.

        Raises:
            RemoteError: it has no such message.
            SessionGoneError: it means that the session has ended.
        """
        if 200 <= answer.status < 300:
            return
        is_modern = exchange is not None and exchange.is_modern
        if answer.status == 404 and self.conversation.session_id and not is_modern:
            raise SessionGoneError
        if exchange and exchange.waiting:
            text = await response_body.refusal(answer)
            await self._output.write(self.conversation.refused(text, exchange))
            if not exchange.waiting:
                return
        challenge = answer.headers.get("WWW-Authenticate", "")
        raise upstream_errors.refused(answer.status, challenge)

    async def _follow(self, answer: ClientResponse, exchange: Exchange, cursor: Cursor) -> None:
        if answer.status == 202:
            raise RemoteError(_NEVER)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as deadline:

                async def take(text: bytes) -> None:
                    await self.take(text, exchange)
                    if not exchange.waiting and deadline.when() is None:
                        deadline.reschedule(loop.time() + _LINGER_S)

                await response_body.messages(answer, take, cursor)
        except TimeoutError:
            return

    async def _resume(self, exchange: Exchange, cursor: Cursor) -> None:
        """Request the rest of a stream that ended before its response.

        Raises:
            RemoteError: the rest is not available.
        """
        tries = 0
        while exchange.waiting:
            await asyncio.sleep(pause_s(cursor, tries))
            before = cursor.last_id
            try:
                await self._resume_once(exchange, cursor)
            except RemoteError as why:
                if not may_pass(why) or tries >= _TRIES:
                    raise
            tries = 0 if cursor.last_id != before else tries + 1
            if tries > _TRIES:
                return

    async def _resume_once(self, exchange: Exchange, cursor: Cursor) -> None:
        headers = self.conversation.session_headers() | {"Last-Event-ID": cursor.last_id}
        async with self.client.listen(headers) as answer:
            await self.expect_taken(answer, exchange)
            if exchange.waiting:
                await self._follow(answer, exchange, cursor)


def pause_s(cursor: Cursor, tries: int) -> float:
    """Return the pause before a stream is requested again, after so many failed tries."""
    return min(cursor.retry_s * (1 << tries), max(cursor.retry_s, _MAX_PAUSE_S))


def may_pass(why: RemoteError) -> bool:
    """Return whether a retry of the same request may succeed."""
    if isinstance(why, SessionGoneError):
        return False
    return not why.status or why.status >= 500 or why.status in _MAY_PASS
