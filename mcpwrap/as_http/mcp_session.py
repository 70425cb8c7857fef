"""HTTP session that began with a handshake: routes the server's messages to SSE streams."""

import asyncio
from collections.abc import Sequence

from mcpwrap.as_http.event_streams import Stream
from mcpwrap.as_http.gate.gate_session import GateSession
from mcpwrap.core.http import status_codes
from mcpwrap.core.http.event_history import History, StreamEvent
from mcpwrap.core.http.in_band_tags import UntaggedMessage, remove_tags
from mcpwrap.core.http.param_headers import ParamHeaders
from mcpwrap.core.http.routing import STANDALONE, Routes
from mcpwrap.core.protocol.jsonrpc import (
    INTERNAL_ERROR,
    MAX_BATCH,
    Batch,
    Decoded,
    Failure,
    Id,
    Request,
    Result,
    Sender,
    decode,
    error_response,
)
from mcpwrap.core.wire import session_socket

_MAX_UNREAD_STREAMS = 64  # of answers that nobody has fetched; the oldest are lost
_MAX_UNREAD_BYTES = 16 * 1024 * 1024
_CANCELLED_WITHIN_S = 5.0  # most servers do not answer what was cancelled


class McpSession:
    """Router of the server's messages; kept until either side ends it."""

    def __init__(self, id_: str, gate: GateSession, params: ParamHeaders, now_s: float) -> None:
        self.id = id_
        self.gate = gate
        self.version = ""  # as the server has agreed to it
        self.history = History()
        self.standalone = Stream(STANDALONE)
        self.connections = 0
        self.heard_at_s = now_s
        self._params = params
        self._routes = Routes()
        self._streams: dict[int, Stream] = {}
        self._last_stream = self._last_event = 0
        gate.deliver = self._deliver
        gate.when_ended = self._tell_ended

    @property
    def is_resumable(self) -> bool:
        """Say whether a stream can be asked for again from its beginning (SEP-1699)."""
        return self.version >= "2025-11-25"

    def is_in_use(self, request_id: Id) -> bool:
        """Say whether a request of that id has no answer yet."""
        return request_id in self._routes

    def open(self, requests: Sequence[Request]) -> Stream:
        """Return the stream on which the answers to these requests will be told."""
        self._forget_unread()
        self._last_stream += 1
        stream = self._streams[self._last_stream] = Stream(self._last_stream)
        self._routes.add(stream.number, requests)
        return stream

    def open_on_standalone(self, requests: Sequence[Request]) -> None:
        """Have the answers told where all else is: in the old transport."""
        self._routes.add(STANDALONE, requests)

    def find(self, number: int) -> Stream | None:
        """Return a stream on which something may come, or is still unread."""
        return self.standalone if number == STANDALONE else self._streams.get(number)

    def finished(self, number: int) -> Stream:
        """Return a stream on which nothing will come."""
        stream = Stream(number)
        stream.end()
        return stream

    def forget_told(self, stream: Stream) -> None:
        """Forget a stream of which all was told."""
        if stream.is_over and not stream.unread_bytes:
            self._streams.pop(stream.number, None)

    async def give_up(self, request_id: Id) -> None:
        """Answer for the server, if it does not, a request that was cancelled."""
        if request_id not in self._routes:
            return
        await asyncio.sleep(_CANCELLED_WITHIN_S)
        if request_id in self._routes:
            await self._fail(request_id, status_codes.CANCELLED, "the request was cancelled")

    async def _deliver(self, line: bytes) -> None:
        match decode(line, Sender.SERVER, MAX_BATCH):
            case Decoded() as decoded:
                await self._tell(remove_tags(decoded))
            case Batch(items):
                for item in items:
                    if isinstance(item, Decoded):
                        await self._tell(remove_tags(item))
            case _:  # the gate writes none
                return

    async def _tell(self, untagged: UntaggedMessage) -> None:
        if untagged.is_closed:
            self._have_polled(untagged)
            return
        number = self._routes.route(untagged, self._is_heard)
        if number is None:  # an answer that nobody waits for
            return
        self._learn(untagged)
        await self._put(number, event_of(untagged))

    async def _put(self, number: int, event: StreamEvent) -> None:
        stream = self.find(number)
        if stream is None:
            return
        self._last_event += 1
        event = StreamEvent(
            number, self._last_event, event.json, event.answers, event.code, event.http
        )
        await stream.put(event)
        if number != STANDALONE and not self._routes.open_on(number):
            stream.end()

    async def _tell_ended(self, ended: session_socket.ServerEnded) -> None:
        """Answer whatever was asked, and end all streams."""
        for stream in [self.standalone, *self._streams.values()]:
            for id_ in self._routes.open_on(stream.number):
                await self._fail(id_, INTERNAL_ERROR, why(ended))
            stream.end()

    async def _fail(self, request_id: Id, code: int, text: str) -> None:
        number = self._routes.take(request_id)
        if number is not None:
            json = error_response(request_id, code, f"mcpwrap: {text}")
            await self._put(number, StreamEvent(number, 0, json, request_id, code))

    def _have_polled(self, untagged: UntaggedMessage) -> None:
        """End the response of a request, so that the agent asks for the rest a little later."""
        number = None if untagged.about is None else self._routes.stream_of(untagged.about)
        stream = None if number is None else self._streams.get(number)
        if stream is not None and self.is_resumable:
            stream.pause()

    def _learn(self, untagged: UntaggedMessage) -> None:
        if isinstance(untagged.message, Result) and isinstance(untagged.message.result, dict):
            self._params.remember(untagged.message.result)
            version = untagged.message.result.get("protocolVersion")
            if not self.version and isinstance(version, str):
                self.version = version

    def _is_heard(self, number: int) -> bool:
        stream = self.find(number)
        return stream is not None and stream.has_reader

    def _forget_unread(self) -> None:
        unread = [one for one in self._streams.values() if one.is_over and not one.has_reader]
        size = sum(one.unread_bytes for one in unread)
        while unread and (len(unread) > _MAX_UNREAD_STREAMS or size > _MAX_UNREAD_BYTES):
            size -= unread[0].unread_bytes
            del self._streams[unread.pop(0).number]


def event_of(untagged: UntaggedMessage) -> StreamEvent:
    """Return a message as an event of no number yet."""
    match untagged.message:
        case Result(id=answered):
            return StreamEvent(0, 0, untagged.json, answered)
        case Failure(id=answered, error=error):
            code = error["code"]
            return StreamEvent(
                0,
                0,
                untagged.json,
                answered,
                code if isinstance(code, int) else None,
                untagged.http,
            )
        case _:
            return StreamEvent(0, 0, untagged.json)


def why(ended: session_socket.ServerEnded) -> str:
    """Return how a session ended, for an agent."""
    said = f": {ended.why}" if ended.why else ""
    return f"the server has ended with status {ended.status}{said}"
