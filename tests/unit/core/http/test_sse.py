"""SSE parser, for chunks of any size, and encoder: every parser reads the same events."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.http import sse
from mcpwrap.core.http.sse import EventBuffer, EventTooLongError, SseEvent


def read(*chunks: bytes) -> tuple[list[SseEvent], str, int | None]:
    buffer = EventBuffer()
    events = [event for chunk in chunks for event in buffer.feed(chunk)]
    return events, buffer.last_id, buffer.retry_ms


def data(*texts: bytes) -> list[SseEvent]:
    return [SseEvent(text) for text in texts]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"", []),
        (b"data: a\n\n", data(b"a")),
        (b"data:a\n\n", data(b"a")),
        (b"data:  a \n\n", data(b" a ")),  # one space is removed
        (b"data: a\r\rdata: b\r\n\r\ndata: c\n\n", data(b"a", b"b", b"c")),
        (b"data: a\ndata: b\ndata\n\n", data(b"a\nb\n")),
        (b"data\n\n", data(b"")),
        (b"data: a\n", []),  # cut off
        (b"data: a\n\ndata: b", data(b"a")),
        (b": a comment\n\n:\r\n\r\n", []),
        (
            b"event: endpoint\ndata: /m\n\ndata: a\n\n",
            [SseEvent(b"/m", "endpoint"), SseEvent(b"a")],
        ),
        (
            b"event: x\n\ndata: a\n\n",
            data(b"a"),
        ),  # without data there is no event, and the kind is reset
        (b"event:\ndata: a\n\n", data(b"a")),
        (b"\xef\xbb\xbfdata: a\n\n", data(b"a")),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b"data: \xef\xbb\xbf\n\n", data(b"\xef\xbb\xbf")),
        (b"DATA: a\nfield\nother: a:b\n\n", []),
        (b"data: a:b\n\n", data(b"a:b")),
        (b"\n\n\ndata: a\n\n\n\n", data(b"a")),
        (b"data: \xff\n\n", data(b"\xff")),  # the JSON parser refuses it
    ],
)
def test_events_are_those_of_the_standard(stream: bytes, events: list[SseEvent]) -> None:
    assert read(stream)[0] == events
    assert read(*(bytes([byte]) for byte in stream))[0] == events


@pytest.mark.parametrize(
    ("stream", "last_id", "retry_ms"),
    [
        (b"id: 1\n", "", None),  # the event is incomplete
        (b"id: 1\n\n", "1", None),
        (b"id: 1\n\ndata: a\n\n", "1", None),  # it stays
        (b"id: 1\n\nid\n\n", "", None),
        (b"id: 1\n\nid: a\0b\n\n", "1", None),
        (b"id: \xc3\xa9\n\n", "\u00e9", None),
        (b"retry: 15\n", "", 15),
        (b"retry: -1\nretry: 1.5\nretry: x\nretry:\n", "", None),
        (b"retry: 7\nretry: 9999999999\n", "", 7),  # a pause of months is ignored
        (b"retry: \xd9\xa1\n", "", None),  # a digit, but of another script
    ],
)
def test_where_and_when_to_resume(stream: bytes, last_id: str, retry_ms: int | None) -> None:
    assert read(stream)[1:] == (last_id, retry_ms)


_PIECES = st.sampled_from(
    b"\r|\n|\r\n|data|data: x|event:e|id: 7|retry: 3|:| |a|\xef\xbb\xbf|\xef|\0|id:\0".split(b"|")
)


@given(st.lists(_PIECES, max_size=30).map(b"".join), st.data())
def test_the_events_do_not_depend_on_the_chunks(stream: bytes, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[start:end] for start, end in pairwise([0, *cuts, len(stream)])]
    assert read(*pieces) == read(stream)


@pytest.mark.parametrize(
    "stream",
    [b"data: " + b"x" * 100, b"data: x\n" * 60, b"id: " + b"x" * 101 + b"\n", b": " + b"x" * 100],
)
@pytest.mark.parametrize("step", [1, 1000])
def test_an_event_is_bounded(stream: bytes, step: int) -> None:
    buffer = EventBuffer(max_event_bytes=100)
    pieces = [stream[at : at + step] for at in range(0, len(stream), step)]
    with pytest.raises(EventTooLongError):
        list(map(buffer.feed, pieces))


def test_events_within_the_bound_are_all_returned() -> None:
    buffer = EventBuffer(max_event_bytes=100)
    assert len(buffer.feed(b"data: 123456789\n\n" * 1000)) == 1000


@pytest.mark.parametrize(
    ("event", "id_", "written"),
    [
        ("message", "", b"event: message\ndata: {}\n\n"),
        ("message", "2-7", b"event: message\nid: 2-7\ndata: {}\n\n"),
        ("endpoint", "", b"event: endpoint\ndata: {}\n\n"),
    ],
)
def test_an_event_ends_with_an_empty_line(event: str, id_: str, written: bytes) -> None:
    assert sse.encode_event(b"{}", event=event, id_=id_) == written


def test_a_resumable_stream_begins_with_an_event_without_data() -> None:
    assert sse.priming_event("1-0", 1000) == b"id: 1-0\nretry: 1000\ndata: \n\n"
