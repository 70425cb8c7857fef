"""Read access of an account that has logged in, by its groups."""

import grp
import os
import pwd

import msgspec

from mcpwrap.core.wire.approval_socket import Pending
from mcpwrap.gate_client.approvals import Listing

APPROVERS = "mcpwrap-approvers"


class Viewer(msgspec.Struct, frozen=True):
    """Account and its read access. Only the gate decides what the account may answer."""

    user: str
    uid: int
    sees_all: bool

    def sees(self, call: Pending) -> bool:
        """Return whether this account may read a call."""
        return self.sees_agent(call.agent_uid)

    def sees_agent(self, agent_uid: int) -> bool:
        """Return whether this account may read the calls and rules of an agent's account."""
        return self.sees_all or agent_uid == self.uid

    def cut(self, listing: Listing) -> Listing:
        """Return the part of a listing that this account may read."""
        pending = tuple(call for call in listing.pending if self.sees(call))
        paused = tuple(
            agent for agent in listing.paused if self.sees_all or agent.agent_uid == self.uid
        )
        return Listing(pending, paused)


def viewer_of(user: str) -> Viewer | None:
    """Return the read access of an account, by its present groups; None if it does not exist."""
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        return None
    return Viewer(user, account.pw_uid, account.pw_uid == 0 or _is_approver(account))


def _is_approver(account: pwd.struct_passwd) -> bool:
    try:
        group = grp.getgrnam(APPROVERS).gr_gid
    except KeyError:
        return False
    return group in os.getgrouplist(account.pw_name, account.pw_gid)


def name_of(uid: int) -> str:
    """Return the name of an account, or its number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
