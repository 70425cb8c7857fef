"""Exchange with a remote server: one message from its POST to its answer, with resumption."""

import asyncio

from aiohttp import ClientResponse
from yarl import URL

from mcpwrap.as_wrapper.remote import response_body
from mcpwrap.as_wrapper.remote.http_client import UpstreamClient
from mcpwrap.as_wrapper.remote.line_io import LineWriter
from mcpwrap.as_wrapper.remote.response_body import Cursor
from mcpwrap.core.http import upstream_errors
from mcpwrap.core.http.upstream_errors import RemoteError, SessionGoneError
from mcpwrap.core.http.upstream_session import Exchange, UpstreamSession

_NEVER = "The remote server has accepted the request, and gives no answer"
_TRIES = 6  # in a row that bring nothing: of one second at first, two minutes
_MAX_PAUSE_S = 60.0
_LINGER_S = 0.5  # after the last answer: a stream read to its end leaves a connection to use again
_MAY_PASS = frozenset({408, 425, 429})


class Upstream:
    """Remote server, and all exchanges with it."""

    def __init__(
        self, client: UpstreamClient, conversation: UpstreamSession, output: LineWriter
    ) -> None:
        self.client = client
        self.conversation = conversation
        self.post_to: URL | None = None  # by HTTP+SSE, where one stream has all answers
        self._output = output
        self._answered: dict[Exchange, asyncio.Event] = {}

    async def take(self, text: bytes, exchange: Exchange | None) -> None:
        """Pass on a message that came on the stream of an exchange, or on that of no one.

        Raises:
            RemoteError: it is none.
        """
        await self._output.write(self.conversation.received(text, exchange))
        for waiting, answered in self._answered.items():
            if not waiting.waiting:
                answered.set()

    async def fail(self, exchange: Exchange, why: RemoteError) -> None:
        """Answer what has no answer."""
        await self._output.write(self.conversation.fail(exchange, why))

    async def say(self, lines: list[bytes]) -> None:
        """Pass on lines of the conversation."""
        await self._output.write(lines)

    async def fail_all(self, why: RemoteError) -> None:
        """Answer all that wait."""
        await self._output.write(self.conversation.fail_all(why))

    async def post(self, exchange: Exchange) -> None:
        """Send a message, and pass on what comes for it.

        Raises:
            RemoteError: a request in it has no answer.
            SessionGoneError: none will have one any more.
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
        """Pass on the message of an HTTP error, if it has one for whoever waits.

        Raises:
            RemoteError: it has none.
            SessionGoneError: it is that the session is over.
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
        """Ask for the rest of a stream that ended before its answer.

        Raises:
            RemoteError: it is not to be had.
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
    """Return after which time a stream is asked for again, after so many in vain."""
    return min(cursor.retry_s * (1 << tries), max(cursor.retry_s, _MAX_PAUSE_S))


def may_pass(why: RemoteError) -> bool:
    """Say whether the same request may be answered another time."""
    if isinstance(why, SessionGoneError):
        return False
    return not why.status or why.status >= 500 or why.status in _MAY_PASS
