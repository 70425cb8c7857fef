"""Judgement of a run of `make soak`: tables of calls, faults and explanations."""

from dataclasses import replace

import pytest

from tests.system.guest.soak.model import Call, Done
from tests.system.support.soak import judging
from tests.system.support.soak.judging import percentile

# A session of alice's with `memory` that began at 90 s and worked at 100 s.
CALL = Call("short", "1-short-1", "answered", 101.0, 101.1, 100.0, 90.0, mark="short-1-1")
FAILED = replace(CALL, outcome="failed", ended_s=103.0, mark="short-1-2", text="gone")
AGAIN = Call("short", "1-short-2", "answered", 106.0, 106.5, 105.0, 105.0, mark="short-1-3")


def at(fault: str, began_s: float, ended_s: float, victim: str = "", *, done: bool = True) -> Done:
    return Done(fault, victim, began_s, ended_s, "", done)


@pytest.mark.parametrize(
    ("fault", "explains"),
    [
        (at("kill gate", 102, 102), True),
        (at("kill gate", 103.5, 103.5), False),  # it came later
        (at("kill gate", 99, 99), True),  # nothing has worked since
        (at("kill gate", 70, 70), False),  # a session that began at 90 s has worked since
        (at("kill gate", 102, 102, done=False), False),  # there was no gate to kill
        (at("kill supervisor", 102, 102, "memory"), True),
        (at("kill supervisor", 102, 102, "time"), False),  # another server
        (at("kill squid", 102, 102), False),  # memory needs no network
        (at("kill listener", 102, 102), False),
        (at("reload policy", 102, 102), False),  # which may break nothing
        (at("stop gate", 95, 101), True),
        (at("panic", 102, 104), True),
    ],
)
def test_a_failure_is_explained_by(fault: Done, explains: bool) -> None:  # noqa: FBT001 - a table
    before = Call("short", "0", "answered", 89.0, 89.5, 85.0, 85.0, mark="short-0")
    found = judging.judged(
        [before, CALL, FAILED, AGAIN], [fault], ["short-0", "short-1-1", "short-1-3"]
    )
    assert [call for call, _ in found.explained] == ([FAILED] if explains else [])
    assert list(found.unexplained) == ([] if explains else [FAILED])
    assert found.is_good is explains


def test_a_failure_after_another_session_has_worked_is_not_explained() -> None:
    """The fault is over for this kind; also if it is so for no other kind."""
    late = replace(FAILED, session_s=107.0, since_s=107.0, began_s=107.5, ended_s=108.0)
    found = judging.judged(
        [CALL, AGAIN, late], [at("kill gate", 102, 102)], ["short-1-1", "short-1-3"]
    )
    assert list(found.unexplained) == [late]
    found = judging.judged([CALL, late], [at("kill gate", 102, 102)], ["short-1-1"])
    assert list(found.unexplained) == []


def test_a_fault_explains_nothing_for_ever() -> None:
    late = replace(FAILED, session_s=150.0, since_s=150.0, began_s=150.0, ended_s=151.0)
    found = judging.judged([CALL, late], [at("kill gate", 102, 102)], ["short-1-1"])
    assert list(found.unexplained) == [late]


@pytest.mark.parametrize(
    ("outcome", "fault", "explains"),
    [
        ("silent", "stop gate", True),
        ("silent", "kill gate", False),  # a killed process leaves no call without an answer
        ("wrong", "stop gate", False),  # as what is blocked and was let through
    ],
)
def test_some_failures_need_more_than_a_fault(outcome: str, fault: str, explains: bool) -> None:  # noqa: FBT001 - a table
    call = replace(FAILED, outcome=outcome)
    found = judging.judged([CALL, call], [at(fault, 102, 102)], ["short-1-1"])
    assert found.is_good is explains


def test_each_answered_call_has_its_record() -> None:
    direct = replace(CALL, kind="direct", mark="direct-1-1")  # no message of it is recorded
    refused = replace(CALL, kind="blocked", outcome="refused", mark="blocked-1-1")
    calls = [CALL, direct, refused, replace(FAILED, outcome="refused", mark="")]
    found = judging.judged(calls, [], ["short-1-1", "blocked-1-1"])
    assert (found.recorded, list(found.lost), found.is_good) == (2, [], True)
    found = judging.judged(calls, [], ["short-1-1"])
    assert (found.recorded, list(found.lost), found.is_good) == (1, [refused], False)


def test_a_refusal_needs_no_record_while_none_can_be_written() -> None:
    refused = replace(CALL, kind="blocked", outcome="refused", mark="blocked-1-1")
    full = at("fill the audit's disk", 100.0, 101.0)
    for fault, call, lost in (
        (full, refused, []),
        (full, CALL, [CALL]),  # an answered call has its record before it is carried out
        (replace(full, ended_s=100.9), refused, [refused]),
        (at("kill gate", 100.0, 101.0), refused, [refused]),
    ):
        found = judging.judged([call], [fault], [])
        assert (found.recorded, list(found.lost)) == (0, lost)


def test_recovery_is_until_the_first_call_of_a_new_session() -> None:
    slow = replace(AGAIN, kind="long", ended_s=109.0)
    other = replace(CALL, kind="several-time", mark="x")  # which nothing broke
    calls = [CALL, FAILED, replace(FAILED, kind="long"), AGAIN, slow, other]
    (found,) = judging.judged(calls, [at("kill gate", 102, 102)], []).recoveries
    assert (found.fault, found.first_s, found.all_s) == ("kill gate", 4.5, 7.0)
    assert not judging.judged([CALL, AGAIN], [at("kill gate", 102, 102)], []).recoveries


def test_a_fault_that_goes_wrong_is_a_problem() -> None:
    wrong = Done("reload bad policy", "", 1, 2, "PROBLEM RuntimeError: it went well")
    assert not judging.judged([CALL], [wrong], ["short-1-1"]).is_good


@pytest.mark.parametrize(
    ("values", "share", "found"),
    [
        ([3.0], 0.95, 3.0),
        ([2.0, 1.0], 0.5, 1.0),
        ([float(n) for n in range(1, 101)], 0.95, 95.0),
        ([float(n) for n in range(1, 11)], 0.95, 10.0),
        ([1.0, 2.0, 3.0], 1.0, 3.0),
    ],
)
def test_percentile(values: list[float], share: float, found: float) -> None:
    assert percentile(values, share) == found
