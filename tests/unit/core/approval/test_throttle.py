"""Approval throttling: an agent that asks too often, or is always denied, is paused."""

import pytest

from mcpwrap.core.approval import throttle
from mcpwrap.core.approval.throttle import (
    DENIALS_WITHIN_S,
    MAX_DENIALS,
    MAX_NEW,
    NEW_WITHIN_S,
    PAUSE_S,
    ApprovalThrottle,
    ThrottlePause,
)

ALICE = (1000, "sqlite")


def test_many_denials_pause_an_agent() -> None:
    kept = ApprovalThrottle()
    for number in range(MAX_DENIALS):
        assert kept.why_paused(*ALICE, float(number)) == ""
        kept.denied(*ALICE, float(number))
    why = "paused: 5 requests were denied"
    assert kept.why_paused(*ALICE, 4.0) == f"{why}; retry in 601 s"
    assert kept.why_paused(*ALICE, 603.5) == f"{why}; retry in 1 s"
    assert kept.pauses(603.5) == [ThrottlePause(*ALICE, why, 4.0 + PAUSE_S)]
    assert kept.why_paused(*ALICE, 604.0) == ""
    assert kept.pauses(604.0) == []
    # Other agents and servers are not paused.
    assert kept.why_paused(1001, "sqlite", 4.0) == kept.why_paused(1000, "git", 4.0) == ""
    # After the pause the count begins again.
    for _ in range(MAX_DENIALS - 1):
        kept.denied(*ALICE, 604.0)
    assert kept.why_paused(*ALICE, 604.0) == ""


def test_slow_denials_and_denials_around_an_approval_do_not_pause() -> None:
    kept = ApprovalThrottle()
    for number in range(3 * MAX_DENIALS):
        kept.denied(*ALICE, number * DENIALS_WITHIN_S / (MAX_DENIALS - 1))
    assert kept.pauses(0.0) == []
    kept = ApprovalThrottle()
    for number in range(3 * MAX_DENIALS):
        kept.denied(*ALICE, 0.0)
        if number % (MAX_DENIALS - 1) == 0:
            kept.approved(*ALICE)
    assert kept.pauses(0.0) == []


def test_many_questions_pause_it_for_less_long() -> None:
    kept = ApprovalThrottle()
    assert [kept.asked(*ALICE, float(number)) for number in range(MAX_NEW)] == [""] * MAX_NEW
    why = f"paused: {MAX_NEW} questions in 60 s"
    assert kept.asked(*ALICE, 30.0) == why
    assert kept.why_paused(*ALICE, 30.0) == f"{why}; retry in 61 s"
    assert kept.why_paused(*ALICE, 30.0 + NEW_WITHIN_S) == ""
    assert kept.asked(*ALICE, 30.0 + NEW_WITHIN_S) == ""


def test_questions_that_come_slowly_are_all_asked() -> None:
    kept = ApprovalThrottle()
    every_s = NEW_WITHIN_S / MAX_NEW
    assert not any(kept.asked(*ALICE, every_s * number) for number in range(5 * MAX_NEW))


def test_the_number_of_known_pairs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "_MAX_KNOWN", 2)
    kept = ApprovalThrottle()
    for uid in (1, 2, 1, 3):
        kept.asked(uid, "sqlite", 0.0)
    assert list(kept._known) == [
        (1, "sqlite"),
        (3, "sqlite"),
    ]  # the pair that asked longest ago is dropped
