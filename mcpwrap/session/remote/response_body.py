"""Response body reader: messages of JSON or SSE as they arrive, with size limits."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import ClientError, ClientResponse

from mcpwrap.core.http import header_values
from mcpwrap.core.http.sse import EventBuffer, SseEvent
from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.core.protocol.framing import MAX_LINE_BYTES, LineTooLongError
from mcpwrap.session.remote.error_mapping import mapped_errors
from mcpwrap.session.remote.http_client import EVENT_STREAM, JSON, kind_of
from mcpwrap.session.remote.timeouts import HEAD_S, UNENDED, time_limit

_MAX_REFUSAL_BYTES = 1024 * 1024  # of the body of an HTTP error
_DEFAULT_RETRY_S = 1.0
_MIN_RETRY_S, _MAX_RETRY_S = 0.01, 300.0  # bounds for the `retry` of a server

Take = Callable[[bytes], Awaitable[None]]


@dataclass(slots=True)
class Cursor:
    """Event ID from which a stream can be resumed, "" for none, and the pause before that."""

    last_id: str = ""
    retry_s: float = _DEFAULT_RETRY_S

    def follow(self, events: EventBuffer) -> None:
        """Note the last ID and pause of a stream."""
        if events.last_id and header_values.is_plain(events.last_id):
            self.last_id = events.last_id
        if events.retry_ms is not None:
            self.retry_s = min(max(events.retry_ms / 1000, _MIN_RETRY_S), _MAX_RETRY_S)


async def messages(answer: ClientResponse, take: Take, cursor: Cursor) -> None:
    """Pass on the text of each message in a 2xx response, until it ends or breaks.

    Raises:
        RemoteError: its media type is neither JSON nor SSE, or it is too long or too slow.
    """
    kind = kind_of(answer)
    if kind == JSON:
        with mapped_errors():
            text = await _whole(answer, MAX_LINE_BYTES)
        await take(text)
    elif kind == EVENT_STREAM:

        async def take_message(event: SseEvent) -> None:
            if event.kind == "message" and event.data:  # an empty event only has an ID
                await take(event.data)

        await events(answer, take_message, cursor)
    else:
        raise RemoteError(
            f"The remote server's response is neither {JSON} nor {EVENT_STREAM} [E-REMOTE-RESPONSE]"
        )


async def events(
    answer: ClientResponse, take: Callable[[SseEvent], Awaitable[None]], cursor: Cursor
) -> None:
    """Pass on each event of a stream, until it ends or breaks.

    Raises:
        RemoteError: an event is too long.
    """
    buffer = EventBuffer()
    with mapped_errors():
        while chunk := await _next(answer):
            found = buffer.feed(chunk)
            cursor.follow(buffer)
            for event in found:
                await take(event)


async def refusal(answer: ClientResponse) -> bytes:
    """Return the body of an HTTP error if it can be a message; b"" if not."""
    if kind_of(answer) != JSON:
        return b""
    try:
        return await _whole(answer, _MAX_REFUSAL_BYTES)
    except (ClientError, OSError, LineTooLongError, RemoteError):
        return b""


async def _next(answer: ClientResponse) -> bytes:
    """Return the next bytes; b"" at the end, and also where the stream has broken."""
    try:
        return await answer.content.readany()
    except (ClientError, OSError):
        return b""


async def _whole(answer: ClientResponse, at_most_bytes: int) -> bytes:
    text = bytearray()
    async with time_limit(HEAD_S, UNENDED):
        while chunk := await answer.content.readany():
            text += chunk
            if len(text) > at_most_bytes:
                raise LineTooLongError(f"over {at_most_bytes} bytes")
    return bytes(text)
