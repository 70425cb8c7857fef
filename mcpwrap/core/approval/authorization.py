"""Authorization of approvers: rights to see and answer a question, by account and by proof."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeVar

from mcpwrap.core.wire.approval_socket import May, Proof

_Account = TypeVar("_Account", int, str)


@dataclass(frozen=True, slots=True)
class Rights:
    """Approval settings of this machine."""

    group: int  # GID of mcpwrap-approvers; -1 if the group does not exist
    web_uid: int  # of the page's account; -1 if it does not exist
    webhook_uid: int
    same_uid: bool = False  # root allowed the agent's own account to answer without a proof


@dataclass(frozen=True, slots=True)
class ApproverIdentity:
    """Account and groups of a caller, by peer credentials or by password."""

    uid: int
    gids: frozenset[int]


def sees(who: ApproverIdentity, agent_uid: int, rights: Rights) -> bool:
    """Return whether an account may see the questions of that agent's account."""
    if who.uid in {rights.web_uid, rights.webhook_uid, agent_uid}:
        return True
    return _is_approver(who, rights)


def may(who: ApproverIdentity, agent_uid: int, rights: Rights) -> May:
    """Return whether a connected account may answer: yes, only with a proof, or no."""
    if who.uid == rights.webhook_uid:
        return "no"
    if who.uid == rights.web_uid:
        return "proof"
    if who.uid == agent_uid and who.uid != 0:
        return "yes" if rights.same_uid else "proof"
    return "yes" if _is_approver(who, rights) else "no"


def may_proven(
    who: ApproverIdentity, proven: ApproverIdentity, proof: Proof, agent_uid: int, rights: Rights
) -> bool:
    """Return whether a connection may answer with a proof that its user is `proven`.

    Only the page may answer for other accounts than its own, and never by polkit, which would
    authenticate the page's own process.
    """
    if who.uid == rights.web_uid:
        if proof is not Proof.PASSWORD:
            return False
    elif proven.uid != who.uid:
        return False
    return proven.uid == agent_uid or _is_approver(proven, rights)


def reachable(
    agent: _Account, members: AbstractSet[_Account], with_password: AbstractSet[_Account]
) -> AbstractSet[_Account]:
    """Return the accounts, by UID or name, that can answer the agent's questions.

    Its own account needs a proof also as a member of the group. Root, polkit and `same_uid` are
    not considered.
    """
    return (members - {agent}) | (with_password & {agent})


def _is_approver(who: ApproverIdentity, rights: Rights) -> bool:
    return who.uid == 0 or rights.group in who.gids
