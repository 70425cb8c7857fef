"""Replay buffer of a session's SSE events: an agent resumes a stream by `Last-Event-ID`."""

import re
from collections import deque

import msgspec

from mcpwrap.core.http.in_band_tags import HttpAnswer
from mcpwrap.core.protocol.jsonrpc import Id

MAX_EVENTS = 1024
MAX_BYTES = 4 * 1024 * 1024
_ID = re.compile(r"([0-9]{1,15})-([0-9]{1,15})")


class StreamEvent(msgspec.Struct, frozen=True):
    """Message on an SSE stream. Numbers grow within a session."""

    stream: int
    number: int
    json: bytes
    answers: Id | None = None
    code: int | None = None  # of an error
    http: HttpAnswer | None = None

    @property
    def id(self) -> str:
        """SSE event id, which an agent returns as `Last-Event-ID`."""
        return id_of(self.stream, self.number)


class History:
    """Bounded buffer of the last events that were sent, oldest first. It always has the last."""

    def __init__(self, max_events: int = MAX_EVENTS, max_bytes: int = MAX_BYTES) -> None:
        self._events: deque[StreamEvent] = deque()
        self._bytes = 0
        self._max_events, self._max_bytes = max_events, max_bytes

    def add(self, event: StreamEvent) -> None:
        """Store an event, and drop the oldest events beyond the bounds."""
        self._events.append(event)
        self._bytes += len(event.json)
        while len(self._events) > self._max_events or (
            self._bytes > self._max_bytes and len(self._events) > 1
        ):
            self._bytes -= len(self._events.popleft().json)

    def after(self, stream: int, number: int) -> list[StreamEvent]:
        """Return the later events of one stream. Events of other streams are left out."""
        return [one for one in self._events if one.stream == stream and one.number > number]


def id_of(stream: int, number: int) -> str:
    """Return the id of an event."""
    return f"{stream}-{number}"


def parsed(untrusted_id: str) -> tuple[int, int] | None:
    """Return stream and number of an event; None if this is not an id of `id_of`."""
    found = _ID.fullmatch(untrusted_id)
    return (int(found[1]), int(found[2])) if found else None
