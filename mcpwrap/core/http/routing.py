"""Routing of the server's messages, which arrive on a pipe, to HTTP response streams."""

from collections.abc import Callable, Iterable

from mcpwrap.core.http.in_band_tags import UntaggedMessage
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Failure, Id, Notification, Request, Result, as_id
from mcpwrap.core.protocol.methods import PROGRESS

STANDALONE = 0  # the stream that a GET reads; it belongs to no request
# Notifications that a server sends because of a request in progress, rather than unprompted.
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
        """Register requests that are forwarded, and their stream."""
        for request in requests:
            self._stream_by_id[request.id] = stream
            token = _token(request)
            if token is not None:
                self._stream_by_token[token] = stream
                self._tokens[request.id] = token

    def take(self, request_id: Id) -> int | None:
        """Return the stream of an answered request, and forget the request."""
        token = self._tokens.pop(request_id, None)
        if token is not None:
            self._stream_by_token.pop(token, None)
        return self._stream_by_id.pop(request_id, None)

    def open_on(self, stream: int) -> list[Id]:
        """Return the requests of a stream that have no response yet."""
        return [id_ for id_, of in self._stream_by_id.items() if of == stream]

    def stream_of(self, request_id: Id) -> int | None:
        """Return the stream of a request that has no response yet."""
        return self._stream_by_id.get(request_id)

    def route(self, untagged: UntaggedMessage, has_reader: HasReader) -> int | None:
        """Return the stream for a message; None for a response to a request that is not open."""
        message = untagged.message
        if isinstance(message, (Result, Failure)):
            return self.take(message.id)
        found = self._by_tag_or_token(message, untagged.about)
        return self._by_default(message, has_reader) if found is None else found

    def _by_tag_or_token(self, message: Request | Notification, about: Id | None) -> int | None:
        if about is not None and about in self._stream_by_id:
            return self._stream_by_id[about]
        if isinstance(message, Notification) and message.method == PROGRESS:
            token = as_id(message.params.get("progressToken"))
            return None if token is None else self._stream_by_token.get(token)
        return None

    def _by_default(self, message: Request | Notification, has_reader: HasReader) -> int:
        """Return a stream that has a reader: the latest request's, or the standalone stream.

        A message of a request must arrive before its response. Only one stream has an order.
        """
        open_now = dict.fromkeys(reversed(self._stream_by_id.values()))
        latest = [stream for stream in open_now if has_reader(stream)][:1]
        standalone = [STANDALONE] if has_reader(STANDALONE) else []
        is_of_one = isinstance(message, Request) or message.method in _OF_A_REQUEST
        for stream in [*latest, *standalone] if is_of_one else [*standalone, *latest]:
            return stream
        return STANDALONE


def _token(request: Request) -> Id | None:
    meta: Json = request.params.get("_meta")
    return as_id(meta.get("progressToken")) if isinstance(meta, dict) else None
