"""Log of webhook failures: rate-limited, so that it does not fill the journal."""

import pytest

from mcpwrap.as_webhook.rate_limited_log import EVERY_S, RateLimitedLog


def test_the_first_is_logged_and_then_one_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    now_s = 0.0
    errors = RateLimitedLog(lambda: now_s)
    for now_s in (0.0, 1.0, EVERY_S - 1, EVERY_S):
        errors.note(f"it failed at {now_s}")
    assert capsys.readouterr().err.splitlines() == [
        "it failed at 0.0",
        f"it failed at {EVERY_S}; 2 more before it",
    ]


def test_a_recovery_is_logged_once(capsys: pytest.CaptureFixture[str]) -> None:
    errors = RateLimitedLog()
    errors.mended("it works")  # it has never failed
    errors.note("it failed")
    errors.mended("it works")
    errors.mended("it works")
    assert capsys.readouterr().err.splitlines() == ["it failed", "it works"]


def test_the_text_of_a_receiver_is_one_escaped_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    RateLimitedLog().note("it says \x1b[2J\n<3>root: all is well" + "x" * 1000)
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(r"it says \x1b[2J <3>root")
    assert len(line) <= 300
