"""Progress of one call: what is sent, and when."""

from typing import Any

import pytest

from mcpwrap.as_python.call_progress import CallCancelledError, CallInProgress


def test_news_is_sent_at_the_next_tick_and_silence_ends_after_five_seconds() -> None:
    seen: list[Any] = []
    call = CallInProgress("t", seen.append)
    began = call._began_s
    for after_s in (1.0, 4.9):
        call.tick(began + after_s)
    assert seen == []
    call.tick(began + 5.0)
    call.report("queued")
    call.report("queued")
    for after_s in (6.0, 7.0, 10.9, 11.0):
        call.tick(began + after_s)
    assert [(each["progress"], each["message"]) for each in seen] == [
        (5.0, "5 s: starting"), (6.0, "6 s: queued"), (11.0, "11 s: queued"),
    ]  # fmt: skip


def test_a_call_without_a_token_sends_nothing() -> None:
    seen: list[Any] = []
    call = CallInProgress(None, seen.append)
    call.tick(call._began_s + 9)
    assert seen == []


@pytest.mark.parametrize("end", ["finish", "cancel"])
def test_no_notification_follows_the_end(end: str) -> None:
    seen: list[Any] = []
    call = CallInProgress("t", seen.append)
    getattr(call, end)()
    call.tick(call._began_s + 9)
    assert seen == []


def test_a_message_has_a_bounded_length() -> None:
    seen: list[Any] = []
    call = CallInProgress("t", seen.append)
    call.report("x" * 5000)
    call.tick(call._began_s + 1)
    assert len(seen[0]["message"]) == 1000


def test_the_work_of_a_cancelled_call_stops() -> None:
    call = CallInProgress("t", lambda _params: None)
    call.cancel()
    with pytest.raises(CallCancelledError):
        call.report("installing")
    with pytest.raises(CallCancelledError):
        call.pause(60.0)  # which does not take a minute
