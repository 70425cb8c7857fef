"""Checks of `mcpwrap doctor`: one result a line, with a fix.

The approval checks are here too: existing approvers, and agents under their accounts.
"""

from collections.abc import Collection
from typing import Literal

import msgspec

from mcpwrap.core.approval.authorization import reachable

APPROVERS_GROUP = "mcpwrap-approvers"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one check. `--json` prints a list of these."""

    what: str
    state: Literal["good", "warning", "failed", "unknown"]
    found: str
    fix: str = ""


def good(what: str, found: str) -> Check:
    """Return a check that passed."""
    return Check(what=what, state="good", found=found)


def warned(what: str, found: str, fix: str) -> Check:
    """Return a check with a warning, in spite of which servers work."""
    return Check(what=what, state="warning", found=found, fix=fix)


def failed(what: str, found: str, fix: str) -> Check:
    """Return a failed check: something is broken, or open."""
    return Check(what=what, state="failed", found=found, fix=fix)


def unknown(what: str, why: str, fix: str) -> Check:
    """Return a check that could not be made: it has neither passed nor failed."""
    return Check(what=what, state="unknown", found=f"could not be checked: {why}", fix=fix)


class ApproverAccounts(msgspec.Struct, frozen=True, kw_only=True):
    """Accounts that run agents or can approve, by name."""

    agents: Collection[str]  # of servers whose calls are held for approval
    members: Collection[str]  # of the group
    with_password: Collection[str]
    same_uid: bool = False  # the configuration lets agents' accounts answer without a proof
    has_polkit: bool = False  # it can prove that the agent's own account answers


def approver_checks(found: ApproverAccounts) -> list[Check]:
    """Return the checks where a rule requires approval. Root can always give it."""
    if found.same_uid:
        return [_same_uid(), *_by_others(found)]
    return _by_others(found) or [_only_root()]


def _same_uid() -> Check:
    return warned(
        "approvals by agents' accounts",
        "`same_uid` lets them answer without a proof: each agent can approve its own calls",
        "remove it from [approvals]; `sudo mcpwrap approvals passwd USER` gives them a proof",
    )


def _only_root() -> Check:
    return warned(
        "approvals",
        "rules require them, and only root can give one",
        f"`sudo usermod -aG {APPROVERS_GROUP} USER`, or `sudo mcpwrap approvals passwd USER`",
    )


def _by_others(found: ApproverAccounts) -> list[Check]:
    if not found.members and not found.with_password:
        return []
    by = [("members", found.members), ("by password", found.with_password)]
    text = "; ".join(f"{how}: {', '.join(sorted(names))}" for how, names in by if names)
    both = (_both(name, found) for name in sorted(_in_both(found)))
    return [good("approvals", text), *_unanswered(found), *both]


def _unanswered(found: ApproverAccounts) -> list[Check]:
    """Return the warning on agents whose calls only root can approve."""
    if found.same_uid or found.has_polkit:
        return []
    members, with_password = frozenset(found.members), frozenset(found.with_password)
    names = [n for n in sorted(found.agents) if not reachable(n, members, with_password)]
    if not names:
        return []
    return [
        warned(
            f"approvals of calls of {', '.join(names)}",
            "only root can give one: an account's own calls need its password, or another account",
            f"`sudo mcpwrap approvals passwd {names[0]}`, or"
            f" `sudo usermod -aG {APPROVERS_GROUP} OTHER`",
        )
    ]


def _in_both(found: ApproverAccounts) -> set[str]:
    return set(found.agents) & {*found.members, *found.with_password}


def _both(name: str, found: ApproverAccounts) -> Check:
    """Return the warning on an account that runs agents and approves: what the boundary lacks."""
    worth = []
    if name in found.with_password:
        worth.append("its programs can watch its password being typed")
    if name in found.members:
        worth.append("its programs can approve calls of other accounts")
    return warned(
        f"approvals by {name}",
        f"agents run under this account too: {', and '.join(worth)}",
        f"let an account that runs no agent approve: `sudo usermod -aG {APPROVERS_GROUP} OTHER`",
    )
