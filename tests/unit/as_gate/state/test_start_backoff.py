"""Backoff after failed starts: a server is not retried at once, and is retried before long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.as_gate.state.start_backoff import LAST_S, Backoff


def failed(*at_s: float) -> Backoff:
    """Return the backoff of a server that failed at these times."""
    backoff = Backoff()
    for now_s in at_s:
        backoff.note("git", "no such file", now_s)
    return backoff


@pytest.mark.parametrize(
    ("failed_at_s", "now_s", "refusal"),
    [
        ((), 0, ""),
        ((100,), 100, ""),  # the first failure has no backoff
        ((100, 100), 100, "no such file (failed 2 times; next try in 1 s)"),
        ((100, 100), 100.9, "no such file (failed 2 times; next try in 1 s)"),
        ((100, 100), 101, ""),
        ((100, 101), 101.5, "no such file (failed 2 times; next try in 1 s)"),
        ((100, 101, 102), 102, "no such file (failed 3 times; next try in 2 s)"),
        ((100, 101, 102), 104, ""),
        ((100, 101, 102, 104), 104, "no such file (failed 4 times; next try in 4 s)"),
        ((1, 2, 3, 4, 5), 5, "no such file (failed 5 times; next try in 4 s)"),  # the maximum
        ((1, 2, 3, 4, 5), 9, ""),
        ((100, 130), 130, "no such file (failed 2 times; next try in 1 s)"),
        ((100, 130.1), 130.1, ""),  # too long ago to be the same failure
        ((1, 2, 3, 4, 5, 36, 36), 36, "no such file (failed 2 times; next try in 1 s)"),
    ],
)
def test_the_backoff_grows_with_each_failure(
    failed_at_s: tuple[float, ...], now_s: float, refusal: str
) -> None:
    assert failed(*failed_at_s).refusal("git", now_s) == refusal


def test_each_server_has_its_own_backoff() -> None:
    backoff = failed(1, 1)
    backoff.note("time", "another reason", 1)
    assert backoff.refusal("time", 1) == ""
    assert backoff.refusal("git", 1)


def test_the_last_reason_is_returned() -> None:
    backoff = failed(1)
    backoff.note("git", "another reason", 1)
    assert backoff.refusal("git", 1).startswith("another reason (failed 2 times")


def test_a_new_configuration_clears_the_backoff() -> None:
    backoff = failed(1, 1, 1)
    backoff.forget_all()
    assert backoff.refusal("git", 1) == ""
    backoff.note("git", "no such file", 1)
    assert backoff.refusal("git", 1) == ""


@given(st.lists(st.floats(0, 8)))
def test_the_backoff_has_a_maximum(pauses_s: list[float]) -> None:
    now_s = 0.0
    backoff = Backoff()
    for pause_s in pauses_s:
        now_s += pause_s
        backoff.note("git", "no such file", now_s)
    assert backoff.refusal("git", now_s + LAST_S) == ""


def test_a_server_that_fails_for_days_is_still_retried() -> None:
    backoff = failed(*range(0, 80_000, 8))
    assert backoff.refusal("git", 79_992).endswith("(failed 10000 times; next try in 4 s)")
    assert backoff.refusal("git", 79_996) == ""
