"""RUNS AS mcpwrap-gate: for whom a session is, and whether the guest list has them.

An agent connects itself, by its stub; or its listener does, which takes HTTP from nobody else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mcpwrap.core import hello
from mcpwrap.core.spec import Admission
from mcpwrap.linux import accounts
from mcpwrap.linux.peer import Peer

LISTENERS = "mcpwrap-http"  # the account of all of them
_MAX_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Agent:
    """Whose session it is. `who.pid` is the process that connected."""

    who: Peer
    is_by_http: bool

    def may_use(self, admission: Admission) -> bool:
        """Say whether the guest list has them, for the door at which they are."""
        if self.is_by_http:
            return self.who.uid in admission.http_uids
        return admission.admits(self.who.uid, self.who.gids)


def agent_of(peer: Peer, agent_uid: int | None) -> Agent:
    """Return for whom a peer asks, who names an account or none.

    Raises:
        ValueError: only a listener may name one.
    """
    if agent_uid is None:
        return Agent(peer, is_by_http=False)
    if peer.uid != accounts.uid_of(LISTENERS):
        raise ValueError("only the listener of an agent may ask for one")
    return Agent(replace(peer, uid=agent_uid, gids=frozenset()), is_by_http=True)


def uid_in(said: Mapping[str, str]) -> int | None:
    """Return the account that a hello names; None if it names none.

    Raises:
        ValueError: what it says is no UID.
    """
    uid = said.get(hello.AGENT)
    if uid is None:
        return None
    if not (uid.isascii() and uid.isdecimal() and len(uid) <= _MAX_DIGITS):
        raise ValueError("that is no UID")
    return int(uid)
