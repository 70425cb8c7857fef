"""The status line is read back as it was written, and never misread."""

import pytest

from mcpwrap.core import status


@pytest.mark.parametrize(("sessions", "limit"), [(0, 16), (1, 1), (1024, 1024)])
def test_a_status_is_read_as_it_was_written(sessions: int, limit: int) -> None:
    assert status.sessions_in(status.text(sessions, limit)) == sessions


@pytest.mark.parametrize(
    "text", ["", "ready", "ready: 3", "ready: -3 of 4 sessions", "ready: 3 of 4 sessions\n", "3"]
)
def test_another_status_has_no_sessions(text: str) -> None:
    assert status.sessions_in(text) == 0
