"""Fair share of a server's sessions among its agents: some are reserved for the others."""

from collections.abc import Collection
from dataclasses import dataclass

from mcpwrap.core.wire.server_files import AccessRule


@dataclass(frozen=True, slots=True)
class Holder:
    """Account of an open session. `gids` are empty where the agent's listener opened it."""

    uid: int
    gids: frozenset[int] = frozenset()


def refusal(server: str, admission: AccessRule, uid: int, holders: Collection[Holder]) -> str:
    """Return why an account may open no further session by its fair share; "" if it may.

    `holders` has one element for each open session of the server. An account without a session is
    never refused here: the sessions are reserved for such accounts. The wrapper refuses a session
    when all are in use.
    """
    count = sum(holder.uid == uid for holder in holders)
    if not admission.sessions or not count:
        return ""
    reserved = _reserved(admission, uid, holders)
    if not reserved or admission.sessions - len(holders) > reserved:
        return ""
    return (
        f"this account has {count} of the {admission.sessions} sessions of {server!r}, and the "
        "rest is reserved for its other accounts: close a session, or ask the operator to raise "
        "`sessions` [E-SESSION-FAIR-SHARE]"
    )


def _reserved(admission: AccessRule, uid: int, holders: Collection[Holder]) -> int:
    """Return how many sessions are reserved: one for each other account without a session.

    If the members of no group could be listed, each group counts as one account. At most half of
    all sessions are reserved.
    """
    others = [holder for holder in holders if holder.uid != uid]
    accounts = {*admission.uids, *admission.members} - {uid, *(one.uid for one in others)}
    groups = set[int]() if admission.members else set(admission.gids)
    for holder in others:
        groups -= holder.gids
    return min(admission.sessions // 2, len(accounts) + len(groups))
