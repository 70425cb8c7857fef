"""SSE encoder: every parser reads the same events."""

import pytest

from mcpwrap.core.http import sse


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


def test_a_stream_that_can_be_asked_for_again_begins_with_an_event_without_data() -> None:
    assert sse.priming_event("1-0", 1000) == b"id: 1-0\nretry: 1000\ndata: \n\n"
