"""Approved calls of hubs: valid once, for a time, and for one session and one document."""

import pytest

from mcpwrap.core.approval.approved_calls import ApprovedCall, ApprovedCalls

CALL = ApprovedCall("a1", "bob", until_s=60.0, in_client=False)


def calls(*approved: ApprovedCall) -> ApprovedCalls:
    made = ApprovedCalls()
    for call in approved:
        made.add("3-1", "00ff", call)
    return made


def test_each_is_used_once() -> None:
    other = ApprovedCall("a2", "carol", until_s=60.0, in_client=False)
    found = calls(CALL, other)
    used = [found.use("3-1", "00ff", 1.0, also_in_client=False) for _ in range(3)]
    assert used == [CALL, other, None]


@pytest.mark.parametrize(
    ("session", "digest", "now_s", "is_found"),
    [
        ("3-1", "00ff", 59.0, True),
        ("3-1", "00ff", 60.0, False),
        ("3-2", "00ff", 1.0, False),
        ("3-1", "00fe", 1.0, False),
    ],
)
def test_it_is_of_one_session_and_document(
    session: str, digest: str, now_s: float, *, is_found: bool
) -> None:
    assert (calls(CALL).use(session, digest, now_s, also_in_client=True) == CALL) == is_found


def test_one_from_the_agents_own_window_counts_only_where_that_is_allowed() -> None:
    own = ApprovedCall("a2", "alice", until_s=60.0, in_client=True)
    assert calls(own).use("3-1", "00ff", 1.0, also_in_client=False) is None
    assert calls(own, CALL).use("3-1", "00ff", 1.0, also_in_client=False) == CALL
    assert calls(own).use("3-1", "00ff", 1.0, also_in_client=True) == own


def test_it_ends_with_its_session() -> None:
    found = calls(CALL)
    found.is_over("3-2")
    found.add("3-2", "00ff", CALL)
    found.is_over("3-1")
    assert found.use("3-1", "00ff", 1.0, also_in_client=True) is None
    assert found.use("3-2", "00ff", 1.0, also_in_client=True) == CALL


def test_clear_removes_all() -> None:
    found = calls(CALL)
    found.clear()
    assert found.use("3-1", "00ff", 1.0, also_in_client=True) is None
