"""Fair shares of sessions: one is reserved for each other agent, and no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.session_shares import Holder, refusal
from mcpwrap.core.wire.server_files import AccessRule

ALICE, BOB, CAROL, DAVE = 1000, 1001, 1002, 1003
GUESTS, STAFF = 50, 60
BOTH = (ALICE, BOB)
MANY = tuple(range(1000, 1020))


def admission(
    sessions: int = 16,
    uids: tuple[int, ...] = (),
    gids: tuple[int, ...] = (),
    members: tuple[int, ...] = (),
) -> AccessRule:
    return AccessRule(uids=uids, gids=gids, inherits=(), members=members, sessions=sessions)


def opened(*counts: tuple[int, int], gids: frozenset[int] = frozenset()) -> list[Holder]:
    """Return this number of sessions of each account, all in these groups."""
    return [Holder(uid, gids) for uid, count in counts for _ in range(count)]


@pytest.mark.parametrize(
    ("guests", "uid", "holders", "is_refused"),
    [
        # Alone she may have all; the wrapper refuses any more.
        (admission(uids=(ALICE,)), ALICE, opened((ALICE, 15)), False),
        (admission(uids=(ALICE,)), ALICE, opened((ALICE, 16)), False),
        # One is reserved for bob, until he has one.
        (admission(uids=BOTH), ALICE, opened((ALICE, 14)), False),
        (admission(uids=BOTH), ALICE, opened((ALICE, 15)), True),
        (admission(uids=BOTH), BOB, opened((ALICE, 15)), False),
        (admission(uids=BOTH), ALICE, opened((ALICE, 14), (BOB, 1)), False),
        (admission(uids=BOTH), BOB, opened((ALICE, 1), (BOB, 14)), False),
        (admission(uids=(ALICE, BOB, CAROL)), ALICE, opened((ALICE, 14)), True),
        (admission(uids=(ALICE, BOB, CAROL)), ALICE, opened((ALICE, 14), (BOB, 1)), True),
        (admission(uids=(ALICE, BOB, CAROL)), ALICE, opened((ALICE, 13), (BOB, 1)), False),
        # A session of an account that is not an agent any more counts, and reserves none.
        (admission(uids=BOTH), ALICE, opened((ALICE, 13), (DAVE, 1)), False),
        (admission(uids=BOTH), ALICE, opened((ALICE, 14), (DAVE, 1)), True),
        # At most half is reserved, so that many accounts do not exclude those that use it.
        (admission(uids=MANY), ALICE, opened((ALICE, 7)), False),
        (admission(uids=MANY), ALICE, opened((ALICE, 8)), True),
        (admission(uids=MANY), BOB, opened((ALICE, 8)), False),
        (admission(uids=MANY), BOB, opened((ALICE, 8), (BOB, 1)), True),
        (admission(uids=MANY), CAROL, opened((ALICE, 8), (BOB, 7)), False),
        (admission(3, uids=MANY), ALICE, opened((ALICE, 1)), False),
        (admission(3, uids=MANY), ALICE, opened((ALICE, 2)), True),
        (admission(1, uids=MANY), ALICE, opened((ALICE, 1)), False),
        # A group without known members is one account, until another member has a session.
        (admission(gids=(GUESTS,)), ALICE, opened((ALICE, 14), gids=frozenset({GUESTS})), False),
        (admission(gids=(GUESTS,)), ALICE, opened((ALICE, 15), gids=frozenset({GUESTS})), True),
        (
            admission(gids=(GUESTS,)),
            ALICE,
            opened((ALICE, 14), (BOB, 1), gids=frozenset({GUESTS})),
            False,
        ),
        (
            admission(gids=(GUESTS, STAFF)),
            ALICE,
            opened((ALICE, 14), (BOB, 1), gids=frozenset({GUESTS})),
            True,
        ),
        (
            admission(gids=(GUESTS, STAFF)),
            ALICE,
            opened((ALICE, 14), (BOB, 1), gids=frozenset({GUESTS, STAFF})),
            False,
        ),
        # Each known member counts, and an account alone in a group may have all.
        (admission(gids=(GUESTS,), members=(ALICE,)), ALICE, opened((ALICE, 15)), False),
        (admission(2, gids=(GUESTS,), members=(ALICE,)), ALICE, opened((ALICE, 1)), False),
        (admission(gids=(GUESTS,), members=BOTH), ALICE, opened((ALICE, 14), (BOB, 1)), False),
        (admission(gids=(GUESTS,), members=BOTH), ALICE, opened((ALICE, 15)), True),
        (admission(gids=(GUESTS,), members=(*BOTH, CAROL)), ALICE, opened((ALICE, 14)), True),
        (admission(uids=BOTH, gids=(GUESTS,), members=BOTH), ALICE, opened((ALICE, 14)), False),
        # An access list of an earlier version does not have the number of sessions.
        (admission(0, uids=BOTH), ALICE, opened((ALICE, 16)), False),
    ],
)
def test_some_places_are_kept_for_the_others(
    guests: AccessRule,
    uid: int,
    holders: list[Holder],
    is_refused: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert bool(refusal("git", guests, uid, holders)) == is_refused


def test_the_refusal_says_what_to_do() -> None:
    assert refusal("git", admission(uids=BOTH), ALICE, opened((ALICE, 15))) == (
        "this account has 15 of the 16 sessions of 'git', and the rest is reserved for its other "
        "accounts: close a session, or ask the operator to raise `sessions` [E-SESSION-FAIR-SHARE]"
    )


@given(st.integers(1, 20), st.lists(st.sampled_from(MANY), max_size=60))
def test_every_account_of_a_small_list_has_a_session_whatever_the_others_do(
    sessions: int, askers: list[int]
) -> None:
    """As long as no more than half are reserved."""
    uids = MANY[: sessions // 2 + 1]
    guests = admission(sessions, uids=uids)
    holders: list[Holder] = []
    for uid in [*(uid for uid in askers if uid in uids), *uids]:
        has_room = len(holders) < sessions
        if not refusal("git", guests, uid, holders) and has_room:
            holders.append(Holder(uid))
    assert {holder.uid for holder in holders} == {*uids}
