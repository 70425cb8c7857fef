"""Identity of a session's agent, and its authorization by the access list.

An agent connects by its own stub, or by its listener, which accepts HTTP from that agent alone. A
login to a remote server reaches the server's wrapper, not the server.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from mcpwrap.core.names import is_server_name
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import AccessRule
from mcpwrap.linux import accounts
from mcpwrap.linux.unix_socket import peer_credentials
from mcpwrap.linux.unix_socket.peer_credentials import Peer

LISTENERS = "mcpwrap-http"  # the account of all listeners
APPROVERS = "mcpwrap-approvers"
LOGIN = "login"
HUB_CLAIM = "@"  # begins the claim of a hub: the id of its session follows
_MAX_DIGITS = 10
Door = Literal["stub", "http", "login"]


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """Account that a session is for. `who.pid` is the process that connected."""

    who: Peer
    door: Door
    via: str = ""  # the session of the hub by which it uses a member
    hub: str = ""  # that hub
    url_name: str = ""  # of a further URL by which the agent connects

    def may_use(self, admission: AccessRule) -> bool:
        """Return whether the access rule allows this kind of connection to the agent."""
        if self.via and self.door == "http":  # its listener is the hub's, and has no groups
            return self.who.uid in {*admission.uids, *admission.members}
        match self.door:
            case "stub":
                return admission.admits(self.who.uid, self.who.gids)
            case "http":
                has_url = not self.url_name or self.url_name in admission.project_by_url
                return has_url and self.who.uid in admission.http_uids
            case "login":
                is_trusted = self.who.uid == 0 or accounts.gid_of(APPROVERS) in self.who.gids
                return admission.login and is_trusted

    def may_use_from_next_login(self, admission: AccessRule) -> bool:
        """Return whether the access rule would allow it with the groups of the group database."""
        gids = accounts.groups_from_next_login(self.who.uid)
        return replace(self, who=replace(self.who, gids=gids)).may_use(admission)


def agent_of(who: Peer, server: str, claim: str) -> AgentIdentity:
    """Return the agent identity of a peer whose hello has this claim: an agent's UID, or a login.

    Behind the UID there may be the name of a further URL, `1000.web`.

    All listeners have one account, and the unit identifies the listener. So an attacker who
    controls one can open sessions for its own agent and server only.

    Raises:
        ValueError: the claim is not a UID, or not from the listener of that agent and server.
    """
    if not claim:
        return AgentIdentity(who, "stub")
    if claim == LOGIN:
        return AgentIdentity(who, "login")
    uid, dot, url_name = claim.partition(".")
    if not (uid.isascii() and uid.isdecimal() and len(uid) <= _MAX_DIGITS):
        raise ValueError(f"the value of {session_socket.AGENT} is not a UID")
    if dot and not is_server_name(url_name):
        raise ValueError(f"the value of {session_socket.AGENT} has no valid name of a URL")
    unit = f"mcpwrap-http@{server}.{int(uid)}{dot}{url_name}.service"
    if who.uid != accounts.uid_of(LISTENERS) or peer_credentials.service_of(who.pid) != (unit, ""):
        raise ValueError("only the listener of an agent may open a session for it")
    agent = replace(who, uid=int(uid), gids=frozenset())
    return AgentIdentity(agent, "http", url_name=url_name)


def claim_in(variables: Mapping[str, str]) -> str:
    """Return the claim of a hello: an agent's UID, `LOGIN` for a login, or "" without one.

    For the member of a hub it is `@` and the id of the hub's session.

    Raises:
        ValueError: the hello has two of them, or no value for the UID.
    """
    claims = [variables[session_socket.AGENT]] if session_socket.AGENT in variables else []
    if claims in ([""], [LOGIN]) or any(claim.startswith(HUB_CLAIM) for claim in claims):
        raise ValueError(f"the value of {session_socket.AGENT} is not a UID")
    claims += [LOGIN] if session_socket.LOGIN in variables else []
    if len(claims) > 1:
        raise ValueError("a listener cannot request a login")
    if session_socket.VIA in variables:
        claims.append(HUB_CLAIM + variables[session_socket.VIA])
    if len(claims) > 1:
        raise ValueError("a hub cannot claim an agent or request a login")
    return claims[0] if claims else ""
