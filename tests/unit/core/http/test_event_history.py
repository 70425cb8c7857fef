"""Replay buffer of SSE events, within bounds."""

import pytest

from mcpwrap.core.http.event_history import History, StreamEvent, id_of, parsed


def _event(stream: int, number: int, size: int = 10) -> StreamEvent:
    return StreamEvent(stream, number, b"x" * size)


def test_only_later_events_of_the_same_stream_are_replayed() -> None:
    history = History()
    events = [_event(1, 1), _event(2, 2), _event(1, 3), _event(1, 4)]
    for event in events:
        history.add(event)
    assert history.after(1, 1) == [events[2], events[3]]
    assert history.after(1, 0) == [events[0], events[2], events[3]]
    assert history.after(2, 2) == []
    assert history.after(3, 0) == []


def test_the_oldest_are_forgotten_and_the_last_never() -> None:
    history = History(max_events=3, max_bytes=25)
    for number in range(1, 6):
        history.add(_event(1, number))
    assert [event.number for event in history.after(1, 0)] == [4, 5]  # 25 bytes are two
    history.add(_event(1, 6, 1000))
    assert [event.number for event in history.after(1, 0)] == [6]
    history = History(max_events=3)
    for number in range(1, 6):
        history.add(_event(1, number))
    assert [event.number for event in history.after(1, 0)] == [3, 4, 5]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2-7", (2, 7)),
        ("0-0", (0, 0)),
        ("", None),
        ("2", None),
        ("2-7-1", None),
        ("-2-7", None),
        ("2-७", None),
        ("2-" + "9" * 400, None),
    ],
)
def test_an_event_id_is_parsed(text: str, found: tuple[int, int] | None) -> None:
    assert parsed(text) == found
    assert parsed(_event(2, 7).id) == (2, 7)
    assert id_of(2, 7) == "2-7"
