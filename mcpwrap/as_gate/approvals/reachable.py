"""Accounts that can answer an agent's questions, in the monitor: by group, password, polkit.

Root can always answer. It counts while it is connected and watches, because otherwise no person
sees the question.
"""

import grp
import pwd
from contextlib import suppress
from pathlib import Path

import msgspec

from mcpwrap.as_gate.approvals import authentication
from mcpwrap.as_gate.approvals.authentication import account_of
from mcpwrap.as_gate.approvals.connections import GROUP
from mcpwrap.as_gate.approvals.decisions import DecisionExecutor
from mcpwrap.core.approval.authorization import may, reachable
from mcpwrap.core.approval.entry import QuestionRejected
from mcpwrap.core.wire import approver_passwords
from mcpwrap.errors import UsageError
from mcpwrap.linux.polkit import Pkcheck
from mcpwrap.linux.root_files import read_roots_own

KNOWN_FOR_S = 0.05  # bounds the look-ups, and is over before a person sends a request again
_NO_UIDS: frozenset[int] = frozenset()


class ReachableApprovers:
    """Accounts that can answer questions, read again after a moment."""

    def __init__(self, deciding: DecisionExecutor) -> None:
        self._deciding = deciding
        self._read_at_s = float("-inf")
        self._members = _NO_UIDS
        self._with_password = _NO_UIDS

    def can_answer(self, agent_uid: int, now_s: float) -> bool:
        """Return whether an account can answer the questions of this agent."""
        rights = self._deciding.rights()
        watching = self._deciding.people.watching()
        if rights.same_uid or any(may(one.who, agent_uid, rights) == "yes" for one in watching):
            return True
        if now_s - self._read_at_s >= KNOWN_FOR_S:
            self._read_at_s = now_s
            self._members, self._with_password = member_uids(), uids_with_password()
        return bool(reachable(agent_uid, self._members, self._with_password)) or has_polkit()


def member_uids() -> frozenset[int]:
    """Return the members of the group of approvers, also those whose primary group it is."""
    try:
        group = grp.getgrnam(GROUP)
    except KeyError:
        return _NO_UIDS
    uids = {one.pw_uid for one in pwd.getpwall() if one.pw_gid == group.gr_gid}
    for name in group.gr_mem:
        with suppress(KeyError):  # the account was removed
            uids.add(pwd.getpwnam(name).pw_uid)
    return frozenset(uids)


def uids_with_password() -> frozenset[int]:
    """Return the accounts that have a password for approvals."""
    try:
        known = approver_passwords.decode(read_roots_own(str(authentication.APPROVERS))).by_user
    except (OSError, UsageError, msgspec.MsgspecError):
        return _NO_UIDS
    return frozenset(one.uid for one in known.values())


def has_polkit() -> bool:
    """Return whether polkit can prove that the agent's own account answers."""
    return Path(Pkcheck().path).exists()


def no_approver(agent_uid: int) -> QuestionRejected:
    """Return the result of a question that no account can answer, with the commands that help."""
    name = account_of(agent_uid)
    return QuestionRejected(
        f"no account can approve calls of {name or f'uid {agent_uid}'}",
        remedy=(
            f"Root sets up an approver: `sudo usermod -aG {GROUP} USER` for another account, "
            f"`sudo mcpwrap approvals passwd {name or 'USER'}` for the agent's own. "
            "Then send the same request again."
        ),
    )
