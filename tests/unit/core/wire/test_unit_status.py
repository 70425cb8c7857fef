"""The status line is read as it was written, and no other line is misread."""

import pytest

from mcpwrap.core.wire import unit_status


@pytest.mark.parametrize(("sessions", "limit"), [(0, 16), (1, 1), (1024, 1024)])
def test_a_status_is_read_as_it_was_written(sessions: int, limit: int) -> None:
    assert unit_status.sessions_in(unit_status.text(sessions, limit)) == sessions


@pytest.mark.parametrize(
    ("notes", "text"),
    [
        ((), "ready: 3 of 4 sessions"),
        (("", ""), "ready: 3 of 4 sessions"),
        (("", "b"), "ready: 3 of 4 sessions; b"),
        (("a", "b; c"), "ready: 3 of 4 sessions; a; b; c"),
        (("ready: 9 of 9 sessions",), "ready: 3 of 4 sessions; ready: 9 of 9 sessions"),
    ],
)
def test_a_status_is_read_with_any_notes(notes: tuple[str, ...], text: str) -> None:
    assert unit_status.text(3, 4, *notes) == text
    assert unit_status.sessions_in(text) == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ready",
        "ready: 3",
        "ready: -3 of 4 sessions",
        "ready: 3 of 4 sessions\n",
        "3",
        "ready: 3 of 4 sessions, a",
        "ready: 3 of 4 sessions;a",
        "ready: 3 of 4 sessions; a\nb",
        "a; ready: 3 of 4 sessions",
    ],
)
def test_another_status_has_no_sessions(text: str) -> None:
    assert unit_status.sessions_in(text) == 0
