"""Rights of approvers: reading and answering, by account, and the proof each needs."""

import pytest

from mcpwrap.core.approval.authorization import (
    ApproverIdentity,
    Rights,
    may,
    may_proven,
    reachable,
    sees,
)
from mcpwrap.core.wire.approval_socket import May, Proof

GROUP, WEB, HOOK, ALICE, BOB, CAROL = 50, 901, 902, 1000, 1001, 1002
RIGHTS = Rights(GROUP, WEB, HOOK)
NONE = Rights(-1, -1, -1)  # a machine without approvers, page and webhook
PASSWORD, POLKIT = Proof.PASSWORD, Proof.POLKIT


def account(uid: int) -> ApproverIdentity:
    """Return an account; bob and carol are approvers."""
    return ApproverIdentity(uid, frozenset({uid, GROUP} if uid in {BOB, CAROL} else {uid}))


@pytest.mark.parametrize(
    ("uid", "agent_uid", "seen", "may_answer"),
    [
        (BOB, ALICE, True, "yes"),
        (0, ALICE, True, "yes"),
        (ALICE, ALICE, True, "proof"),
        (ALICE, BOB, False, "no"),
        (BOB, BOB, True, "proof"),  # an approver whose own agent asks
        (0, 0, True, "yes"),  # root's agent is root
        (WEB, ALICE, True, "proof"),
        (WEB, WEB, True, "proof"),
        (HOOK, ALICE, True, "no"),
        (HOOK, HOOK, True, "no"),
    ],
)
def test_by_account(uid: int, agent_uid: int, seen: bool, may_answer: May) -> None:  # noqa: FBT001
    assert sees(account(uid), agent_uid, RIGHTS) == seen
    assert may(account(uid), agent_uid, RIGHTS) == may_answer


def test_root_may_allow_the_agents_own_account_without_a_proof() -> None:
    same = Rights(GROUP, WEB, HOOK, same_uid=True)
    assert may(account(ALICE), ALICE, same) == "yes"
    assert may(account(ALICE), BOB, same) == "no"
    assert may(account(WEB), ALICE, same) == "proof"


@pytest.mark.parametrize("uid", [ALICE, BOB])
def test_without_setup_only_root_may_answer(uid: int) -> None:
    assert not sees(account(uid), CAROL, NONE)
    assert may(account(uid), CAROL, NONE) == "no"
    assert may(account(uid), uid, NONE) == "proof"
    assert may(account(0), uid, NONE) == "yes"


@pytest.mark.parametrize(
    ("uid", "proven", "proof", "agent_uid", "allowed"),
    [
        (ALICE, ALICE, PASSWORD, ALICE, True),
        (ALICE, ALICE, POLKIT, ALICE, True),
        (ALICE, ALICE, PASSWORD, BOB, False),
        (ALICE, BOB, PASSWORD, ALICE, False),  # the right password of another account
        (BOB, BOB, PASSWORD, ALICE, True),
        (BOB, CAROL, PASSWORD, ALICE, False),
        (0, BOB, PASSWORD, ALICE, False),
        (WEB, BOB, PASSWORD, ALICE, True),
        (WEB, ALICE, PASSWORD, ALICE, True),
        (WEB, ALICE, PASSWORD, BOB, False),
        (WEB, BOB, POLKIT, ALICE, False),  # polkit would authenticate the page's process
        (WEB, WEB, POLKIT, WEB, False),
        (HOOK, BOB, PASSWORD, ALICE, False),
    ],
)
def test_by_proof(uid: int, proven: int, proof: Proof, agent_uid: int, allowed: bool) -> None:  # noqa: FBT001
    assert may_proven(account(uid), account(proven), proof, agent_uid, RIGHTS) == allowed


@pytest.mark.parametrize(
    ("members", "with_password", "expected"),
    [
        ("", "", ""),
        ("bob", "", "bob"),
        ("alice", "", ""),  # its own calls need a proof of it, as a member too
        ("alice bob", "", "bob"),
        ("", "alice", "alice"),
        ("", "bob", ""),  # a password is a proof for the account itself
        ("alice bob", "alice carol", "alice bob"),
    ],
)
def test_who_can_answer_questions_of_alice(members: str, with_password: str, expected: str) -> None:
    found = reachable("alice", set(members.split()), set(with_password.split()))
    assert found == set(expected.split())
