"""Identity of a session's agent, and its authorization by the access list.

An agent connects by its own stub, or by its listener, which accepts HTTP from that agent alone. A
person who logs in to a remote server talks to its wrapper alone, not to the server.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import AccessRule
from mcpwrap.linux import accounts
from mcpwrap.linux.unix_socket import peer_credentials
from mcpwrap.linux.unix_socket.peer_credentials import Peer

LISTENERS = "mcpwrap-http"  # the account of all of them
APPROVERS = "mcpwrap-approvers"
LOGIN = "login"
_MAX_DIGITS = 10
Door = Literal["stub", "http", "login"]


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """Account that a session is for. `who.pid` is the process that connected."""

    who: Peer
    door: Door

    def may_use(self, admission: AccessRule) -> bool:
        """Say whether the access list allows the agent, by the way in which it connects."""
        match self.door:
            case "stub":
                return admission.admits(self.who.uid, self.who.gids)
            case "http":
                return self.who.uid in admission.http_uids
            case "login":
                is_trusted = self.who.uid == 0 or accounts.gid_of(APPROVERS) in self.who.gids
                return admission.login and is_trusted


def agent_of(who: Peer, server: str, claim: str) -> AgentIdentity:
    """Return for whom a peer asks who claims to ask for another, or to log in.

    All listeners have one account: which of them it is says its unit, so that one that was taken
    over asks for its own agent alone, and for its own server.

    Raises:
        ValueError: only a listener may ask for another, and only for its own agent.
    """
    if not claim:
        return AgentIdentity(who, "stub")
    if claim == LOGIN:
        return AgentIdentity(who, "login")
    if not (claim.isascii() and claim.isdecimal() and len(claim) <= _MAX_DIGITS):
        raise ValueError("that is no UID")
    unit = f"mcpwrap-http@{server}.{int(claim)}.service"
    if who.uid != accounts.uid_of(LISTENERS) or peer_credentials.unit_of(who.pid) != unit:
        raise ValueError("only the listener of an agent may ask for one")
    return AgentIdentity(replace(who, uid=int(claim), gids=frozenset()), "http")


def claim_in(said: Mapping[str, str]) -> str:
    """Return what a hello claims: a UID, that somebody logs in, or "" for nothing.

    Raises:
        ValueError: both, or for whom it says so is none.
    """
    claims = [said[session_socket.AGENT]] if session_socket.AGENT in said else []
    if claims in ([""], [LOGIN]):
        raise ValueError("that is no UID")
    claims += [LOGIN] if session_socket.LOGIN in said else []
    if len(claims) > 1:
        raise ValueError("nobody logs in for another")
    return claims[0] if claims else ""
