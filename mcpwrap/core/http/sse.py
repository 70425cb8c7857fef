"""Server-sent events (SSE): encoder, and parser of a byte stream in chunks of any size.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2.5 and "Parsing
an event stream".
"""

import re

import msgspec

from mcpwrap.core.protocol.framing import MAX_LINE_BYTES

KEEPALIVE = b":\n\n"  # a comment: writing it detects a reader that has disconnected
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MAX_RETRY_DIGITS = 9  # 11 days; a longer value is ignored


def encode_event(data: bytes, *, event: str = "message", id_: str = "") -> bytes:
    """Return one event. `data` is one line, as all JSON that mcpwrap writes."""
    head = f"event: {event}\nid: {id_}\n" if id_ else f"event: {event}\n"
    return head.encode() + b"data: " + data + b"\n\n"


def priming_event(id_: str, retry_ms: int) -> bytes:
    """Return an event without data, from which an agent can resume the stream.

    Source: MCP 2025-11-25, transports, "Sending Messages to the Server", 6.
    """
    return f"id: {id_}\nretry: {retry_ms}\ndata: \n\n".encode()


class EventTooLongError(ValueError):
    """Event longer than the bound, after which the stream cannot be read on."""


class SseEvent(msgspec.Struct, frozen=True):
    """One event, between two empty lines. `data` is as received, and should be UTF-8."""

    data: bytes
    kind: str = "message"


class EventBuffer:
    """Buffer that takes bytes as they arrive and returns complete events.

    `last_id` is the id of the last complete event, "" if there is none; `retry_ms` is the delay
    before a reconnect, None if the sender never set one.
    """

    def __init__(self, max_event_bytes: int = MAX_LINE_BYTES) -> None:
        self.last_id = ""
        self.retry_ms: int | None = None
        self._max_event_bytes = max_event_bytes
        self._partial = bytearray()  # a line that has not ended
        self._is_first_line = True
        self._has_ended_in_cr = False
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._kind = b""
        self._id = b""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Return the events that `chunk` completes.

        Raises:
            EventTooLongError: an event is over the bound, finished or not.
        """
        if not chunk:
            return []
        if self._has_ended_in_cr:
            chunk = chunk.removeprefix(b"\n")
        self._has_ended_in_cr = chunk.endswith(b"\r")
        *ended, rest = _LINE_END.split(chunk)
        events = []
        for piece in ended:
            event = self._end_line(piece)
            if event is not None:
                events.append(event)
        self._partial += rest
        self._check()
        return events

    def _end_line(self, piece: bytes) -> SseEvent | None:
        line = bytes(self._partial) + piece if self._partial else piece
        self._partial.clear()
        if self._is_first_line:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._is_first_line = False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        self._take(name, value.removeprefix(b" "))
        self._check()
        return None

    def _take(self, name: bytes, value: bytes) -> None:
        match name:
            case b"data":
                self._data.append(value)
                self._data_bytes += len(value) + 1
            case b"event":
                self._kind = value
            case b"id" if b"\0" not in value:
                self._id = value
            case b"retry" if value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
                self.retry_ms = int(value)
            case _:
                pass  # a comment, or an unknown field

    def _dispatch(self) -> SseEvent | None:
        self.last_id = self._id.decode(errors="replace")
        kind = self._kind.decode(errors="replace") or "message"
        event = SseEvent(b"\n".join(self._data), kind) if self._data else None
        self._data, self._data_bytes, self._kind = [], 0, b""
        return event

    def _check(self) -> None:
        held_bytes = len(self._partial) + self._data_bytes + len(self._kind) + len(self._id)
        if held_bytes > self._max_event_bytes:
            raise EventTooLongError(f"an event of over {self._max_event_bytes} bytes")
