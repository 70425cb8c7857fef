"""Sessions of hubs' members, in the monitor: their agent, and how many there may be.

The process of such a session has read what a hub sent. So the monitor takes agent, membership and
counts from its own tables and from the kernel, and from that process only the two names.
"""

from mcpwrap.as_gate.agent_identity import HUB_CLAIM, AgentIdentity
from mcpwrap.as_gate.hubs.hub_identity import OuterSession, agent_of_hub, why_not_member
from mcpwrap.as_gate.ipc.hub_packets import OuterAgent
from mcpwrap.as_gate.state.access_list import AccessListFile
from mcpwrap.as_gate.state.children import (
    MAX_INNER,
    MAX_INNER_PER_UID,
    MAX_PER_UID,
    TOO_MANY,
    Child,
    ChildTable,
)
from mcpwrap.core.names import account_of
from mcpwrap.core.wire.server_files import AccessList
from mcpwrap.linux import accounts
from mcpwrap.linux.unix_socket.peer_credentials import Peer

_TOO_MANY_INNER = f"hubs have {MAX_INNER} sessions of their members already [E-SESSION-LIMIT-HUBS]"


class InnerSessions:
    """Rules for the sessions that wrappers of hubs open."""

    def __init__(self, family: ChildTable, access_list: AccessListFile) -> None:
        self._family = family
        self._access_list = access_list
        self._hubs = AccessList(), frozenset[int]()

    def describe(self, peer: Peer, session: str) -> OuterAgent | None:
        """Return the agent of a hub's session for the wrapper of that hub, and for no other."""
        try:
            agent = agent_of_hub(peer, self._outer(session))
        except ValueError:
            return None
        return OuterAgent(agent.hub, agent.who.uid, agent.who.gids, agent.door)

    def agent_of(self, peer: Peer, server: str, claim: str) -> AgentIdentity:
        """Return the agent of a hub's session, by the claim of a session of a member.

        Raises:
            ValueError: the peer may not open it, or the agent may not use that server by the hub.
        """
        agent = agent_of_hub(peer, self._outer(claim.removeprefix(HUB_CLAIM)))
        if why := why_not_member(agent.hub, server, agent, self._access_list.last_read()):
            raise ValueError(why)
        return agent

    def why_no_connection(self, uid: int) -> str:
        """Return why an account may open no further connection; "" if it may."""
        hub_uids = self._hub_uids()
        if uid not in hub_uids:
            return TOO_MANY if self._family.count_of(uid) >= MAX_PER_UID else ""
        return _TOO_MANY_INNER if self._family.count_inner(hub_uids) >= MAX_INNER else ""

    def end_older(self, agent: AgentIdentity, server: str) -> None:
        """End the session of this member that the hub's session has: one is opened in its place.

        It is one that the hub has closed and that has not ended yet, unless the hub is taken over.
        """
        for each in self._family.inner_of(agent.via):
            if each.server == server:
                self._family.kill(each)

    def why_full(self, agent: AgentIdentity) -> str:
        """Return why no further session of a member may be opened for an agent; "" if it may."""
        if self._family.count_inner_of(agent.who.uid) >= MAX_INNER_PER_UID:
            return (
                f"hubs have {MAX_INNER_PER_UID} sessions of their members for this account already "
                "[E-SESSION-LIMIT-HUBS]"
            )
        return ""

    def end_with(self, outer: Child) -> None:
        """End the members' sessions of a hub's session that has ended."""
        if outer.entry is not None:
            for each in self._family.inner_of(outer.entry.session):
                self._family.kill(each)

    def _outer(self, session: str) -> OuterSession | None:
        """Return an open session of a hub."""
        child = self._family.by_session(session)
        if child is None or not child.is_hub:
            return None
        return OuterSession(session, child.server, child.who, child.door)

    def _hub_uids(self) -> frozenset[int]:
        """Return the UIDs of all hubs' accounts, which are looked up once for each access list."""
        admissions = self._access_list.last_read()
        if self._hubs[0] is not admissions:
            hubs = (name for name, rule in admissions.by_server.items() if rule.hub)
            uids = (accounts.uid_of(account_of(name)) for name in hubs)
            self._hubs = admissions, frozenset(uid for uid in uids if uid is not None)
        return self._hubs[1]
