"""Routing of the server's messages, which come by a pipe, to HTTP response streams."""

from collections.abc import Callable, Iterable

from mcpwrap.core.http.in_band_tags import UntaggedMessage
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Failure, Id, Notification, Request, Result, as_id
from mcpwrap.core.protocol.methods import PROGRESS

STANDALONE = 0  # the stream that a GET reads, and belongs to no request
# What a server says because of a request that it works on, rather than by itself.
_OF_A_REQUEST = frozenset({"notifications/message", "notifications/elicitation/complete"})
HasReader = Callable[[int], bool]


class Routes:
    """Open requests of one session, and the stream of each."""

    def __init__(self) -> None:
        self._stream_by_id: dict[Id, int] = {}
        self._stream_by_token: dict[Id, int] = {}
        self._tokens: dict[Id, Id] = {}

    def __contains__(self, request_id: Id) -> bool:
        return request_id in self._stream_by_id

    def add(self, stream: int, requests: Iterable[Request]) -> None:
        """Keep requests that are sent on."""
        for request in requests:
            self._stream_by_id[request.id] = stream
            token = _token(request)
            if token is not None:
                self._stream_by_token[token] = stream
                self._tokens[request.id] = token

    def take(self, request_id: Id) -> int | None:
        """Return the stream of a request that is answered, and forget it."""
        token = self._tokens.pop(request_id, None)
        if token is not None:
            self._stream_by_token.pop(token, None)
        return self._stream_by_id.pop(request_id, None)

    def open_on(self, stream: int) -> list[Id]:
        """Return the requests of a stream that have no answer yet."""
        return [id_ for id_, of in self._stream_by_id.items() if of == stream]

    def stream_of(self, request_id: Id) -> int | None:
        """Return the stream of a request that has no answer yet."""
        return self._stream_by_id.get(request_id)

    def route(self, untagged: UntaggedMessage, is_heard: HasReader) -> int | None:
        """Return the stream for a message; None for an answer that nobody waits for."""
        message = untagged.message
        if isinstance(message, (Result, Failure)):
            return self.take(message.id)
        found = self._by_its_own_words(message, untagged.about)
        return self._by_custom(message, is_heard) if found is None else found

    def _by_its_own_words(self, message: Request | Notification, about: Id | None) -> int | None:
        if about is not None and about in self._stream_by_id:
            return self._stream_by_id[about]
        if isinstance(message, Notification) and message.method == PROGRESS:
            token = as_id(message.params.get("progressToken"))
            return None if token is None else self._stream_by_token.get(token)
        return None

    def _by_custom(self, message: Request | Notification, is_heard: HasReader) -> int:
        """Return the stream that somebody reads: of a request, or that of no request.

        What belongs to a request is told before its answer, which only one stream can promise.
        """
        open_now = dict.fromkeys(reversed(self._stream_by_id.values()))
        latest = [stream for stream in open_now if is_heard(stream)][:1]
        standing = [STANDALONE] if is_heard(STANDALONE) else []
        is_of_one = isinstance(message, Request) or message.method in _OF_A_REQUEST
        for stream in [*latest, *standing] if is_of_one else [*standing, *latest]:
            return stream
        return STANDALONE


def _token(request: Request) -> Id | None:
    meta: Json = request.params.get("_meta")
    return as_id(meta.get("progressToken")) if isinstance(meta, dict) else None
