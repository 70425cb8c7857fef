"""Identity of the agent of a hub's session, for the sessions of the hub's members.

A hub does not name an agent: it names its own session, of which the monitor knows the agent. So a
hub that an attacker controls acts for the agents of its own open sessions only, and its wrapper
gives each session's program no other id than its own.
"""

from dataclasses import dataclass, replace

from mcpwrap.as_gate.agent_identity import AgentIdentity, Door
from mcpwrap.core.names import account_of
from mcpwrap.core.wire.server_files import AccessList
from mcpwrap.linux import accounts
from mcpwrap.linux.unix_socket import peer_credentials
from mcpwrap.linux.unix_socket.peer_credentials import Peer

_SUPERVISOR = "supervisor"  # cgroup of the wrapper's own process
_TRANSPORT = {"stub": "stdio", "http": "http", "login": ""}


@dataclass(frozen=True, slots=True)
class OuterSession:
    """Open session of a hub: its id in the audit, the hub, the agent, and how that connects."""

    id: str
    hub: str
    who: Peer
    door: Door


def agent_of_hub(peer: Peer, outer: OuterSession | None) -> AgentIdentity:
    """Return the agent for whom a hub's wrapper opens a session of a member.

    Raises:
        ValueError: the hub's session is not open, or the peer is not the supervisor of the hub.
    """
    if outer is None:
        raise ValueError("the session of the hub is not open")
    unit = f"mcpwrap@{outer.hub}.service"
    is_account = peer.uid == accounts.uid_of(account_of(outer.hub))
    if not is_account or peer_credentials.service_of(peer.pid) != (unit, _SUPERVISOR):
        raise ValueError("only the wrapper of a hub may open a session for its agent")
    who = replace(outer.who, pid=peer.pid)
    return AgentIdentity(who, outer.door, via=outer.id, hub=outer.hub)


def why_not_member(hub: str, member: str, agent: AgentIdentity, admissions: AccessList) -> str:
    """Return why the agent of a hub's session may not use a server by it; "" if it may.

    `agent` has the id of that session.
    """
    rule = admissions.by_server.get(hub)
    found = next((one for one in rule.hub if one.name == member), None) if rule else None
    if found is None:
        return f"{member!r} is not a member of the hub {hub!r} [E-SESSION-NOT-MEMBER]"
    if (transport := _TRANSPORT[agent.door]) not in found.transports:
        return f"the hub {hub!r} does not offer {member!r} by {transport} [E-SESSION-TRANSPORT]"
    own = admissions.by_server.get(member)
    # The relay of a member is the gate's, and no hub is a member: `apply` refuses both.
    if own is None or own.hub or own.relay == "direct":
        return f"there is no server {member!r} for a hub [E-SESSION-UNKNOWN-SERVER]"
    if not agent.may_use(own):
        return (
            f"this account may not use {member!r}: see `agents` in /etc/mcpwrap/config.toml "
            "[E-SESSION-NOT-AGENT]"
        )
    return ""
