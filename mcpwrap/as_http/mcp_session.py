"""MCP session that began with a handshake: routes the server's messages to SSE streams."""

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

_MAX_UNREAD_STREAMS = 64  # of responses that no agent has fetched; the oldest are dropped
_MAX_UNREAD_BYTES = 16 * 1024 * 1024
_CANCELLED_WITHIN_S = 5.0  # most servers do not answer a cancelled request


class McpSession:
    """Router of the server's messages, until agent or server ends the session."""

    def __init__(self, id_: str, gate: GateSession, params: ParamHeaders, now_s: float) -> None:
        self.id = id_
        self.gate = gate
        self.version = ""  # protocol revision that the server agreed to
        self.history = History()
        self.standalone = Stream(STANDALONE)
        self.connections = 0
        self.heard_at_s = now_s
        self._params = params
        self._routes = Routes()
        self._streams: dict[int, Stream] = {}
        self._last_stream = self._last_event = 0
        gate.deliver = self._deliver
        gate.when_ended = self._fail_all

    @property
    def is_resumable(self) -> bool:
        """Return whether a stream can be resumed from its beginning (SEP-1699)."""
        return self.version >= "2025-11-25"

    def is_in_use(self, request_id: Id) -> bool:
        """Return whether a request with this id has no response yet."""
        return request_id in self._routes

    def open(self, requests: Sequence[Request]) -> Stream:
        """Return a new stream for the responses to these requests."""
        self._forget_unread()
        self._last_stream += 1
        stream = self._streams[self._last_stream] = Stream(self._last_stream)
        self._routes.add(stream.number, requests)
        return stream

    def open_on_standalone(self, requests: Sequence[Request]) -> None:
        """Route the responses to the standalone stream: the old transport has no other."""
        self._routes.add(STANDALONE, requests)

    def find(self, number: int) -> Stream | None:
        """Return a stream that is open or has unread events."""
        return self.standalone if number == STANDALONE else self._streams.get(number)

    def finished(self, number: int) -> Stream:
        """Return a stream that is over, and has no events."""
        stream = Stream(number)
        stream.end()
        return stream

    def forget_told(self, stream: Stream) -> None:
        """Forget a stream that is over, if all its events were read."""
        if stream.is_over and not stream.unread_bytes:
            self._streams.pop(stream.number, None)

    async def give_up(self, request_id: Id) -> None:
        """Answer a cancelled request in place of the server, if the server does not."""
        if request_id not in self._routes:
            return
        await asyncio.sleep(_CANCELLED_WITHIN_S)
        if request_id in self._routes:
            await self._fail(request_id, status_codes.CANCELLED, "the request was cancelled")

    async def _deliver(self, line: bytes) -> None:
        match decode(line, Sender.SERVER, MAX_BATCH):
            case Decoded() as decoded:
                await self._route(remove_tags(decoded))
            case Batch(items):
                for item in items:
                    if isinstance(item, Decoded):
                        await self._route(remove_tags(item))
            case _:  # the gate writes no such line
                return

    async def _route(self, untagged: UntaggedMessage) -> None:
        if untagged.is_closed:
            self._pause_stream(untagged)
            return
        number = self._routes.route(untagged, self._has_reader)
        if number is None:  # a response to a request that is not open
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

    async def _fail_all(self, ended: session_socket.ServerEnded) -> None:
        """Answer all open requests with an error, and end all streams."""
        for stream in [self.standalone, *self._streams.values()]:
            for id_ in self._routes.open_on(stream.number):
                await self._fail(id_, INTERNAL_ERROR, why(ended))
            stream.end()

    async def _fail(self, request_id: Id, code: int, text: str) -> None:
        number = self._routes.take(request_id)
        if number is not None:
            json = error_response(request_id, code, f"mcpwrap: {text}")
            await self._put(number, StreamEvent(number, 0, json, request_id, code))

    def _pause_stream(self, untagged: UntaggedMessage) -> None:
        """End the HTTP response of a request, so that the agent resumes the stream later."""
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

    def _has_reader(self, number: int) -> bool:
        stream = self.find(number)
        return stream is not None and stream.has_reader

    def _forget_unread(self) -> None:
        unread = [one for one in self._streams.values() if one.is_over and not one.has_reader]
        size = sum(one.unread_bytes for one in unread)
        while unread and (len(unread) > _MAX_UNREAD_STREAMS or size > _MAX_UNREAD_BYTES):
            size -= unread[0].unread_bytes
            del self._streams[unread.pop(0).number]


def event_of(untagged: UntaggedMessage) -> StreamEvent:
    """Return a message as an event that has no number yet."""
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
    """Return the reason why a session ended, for an agent."""
    reason = f": {ended.why}" if ended.why else ""
    return f"the server has ended with status {ended.status}{reason}"
