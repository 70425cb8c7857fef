"""Two hubs, their members, and the sessions of their agents, as the monitor knows them."""

import socket
from typing import cast

import pytest

from mcpwrap.as_gate.agent_identity import Door
from mcpwrap.as_gate.state.access_list import AccessListFile
from mcpwrap.as_gate.state.children import Child, ChildTable
from mcpwrap.core.wire.server_files import AccessList, AccessRule, HubMemberRule
from mcpwrap.linux import accounts
from mcpwrap.linux.process.shared_memory import DoorbellFlag, SharedCounters
from mcpwrap.linux.unix_socket import peer_credentials
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from mcpwrap.session.audit_log.master_chain import AuditedSession

ALICE, BOB, CAROL, GUESTS = 1000, 1001, 1002, 900
TOOLS_UID, OTHER_UID = 20_001, 20_002
SUPERVISOR, PROGRAM, FORGED, OTHER_SUPERVISOR = 71, 72, 73, 74
SERVICES = {
    SUPERVISOR: ("mcpwrap@tools.service", "supervisor"),
    PROGRAM: ("mcpwrap@tools.service", "s-0123456789abcdef"),
    FORGED: ("mcpwrap@tools.service", "s-0123456789abcdef/supervisor"),
    OTHER_SUPERVISOR: ("mcpwrap@other.service", "supervisor"),
}


def rule(*uids: int, hub: tuple[HubMemberRule, ...] = (), relay: str = "gate") -> AccessRule:
    return AccessRule(
        uids=uids, gids=(GUESTS,), members=(CAROL,), inherits=(), hub=hub, is_member=not hub,
        http_uids=uids, relay="direct" if relay == "direct" else "gate",
    )  # fmt: skip


def member(name: str, *transports: str) -> HubMemberRule:
    return HubMemberRule(name=name, namespace=name, transports=transports or ("stdio", "http"))


ADMISSIONS = AccessList(
    by_server={
        "tools": rule(
            ALICE, BOB,
            hub=(member("git"), member("local", "stdio"), member("web", "http"), member("raw"),
                 member("gone"), member("other")),
        ),
        "other": rule(ALICE, hub=(member("notes"),)),
        "git": rule(ALICE), "local": rule(ALICE), "web": rule(ALICE), "notes": rule(ALICE, BOB),
        "raw": rule(ALICE, relay="direct"),
    }
)  # fmt: skip


class GivenAccessList:
    """Access list that was read from no file."""

    def __init__(self, admissions: AccessList = ADMISSIONS) -> None:
        self.admissions = admissions

    def last_read(self) -> AccessList:
        return self.admissions

    def as_file(self) -> AccessListFile:
        return cast("AccessListFile", self)


def know_hubs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the accounts and processes of the hubs, which the tests' machine does not have."""
    uids = {"mcpw-tools": TOOLS_UID, "mcpw-other": OTHER_UID}
    monkeypatch.setattr(accounts, "uid_of", uids.get)
    monkeypatch.setattr(peer_credentials, "service_of", lambda pid: SERVICES.get(pid, ("", "")))


class HubWorld:
    """Child table of the monitor."""

    def __init__(self) -> None:
        self.family = ChildTable()
        self._pid = 100_000_000  # no process has it
        self._sockets: list[socket.socket] = []

    def connect(self, uid: int, pid: int = 1) -> Child:
        """Add the child of a connection that has named no server yet."""
        self._pid += 1
        ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        who = Peer(pid, uid, frozenset({uid}))
        tally = SharedCounters()
        verdicts = ours.dup()
        self._sockets += [ours, self.theirs, verdicts]
        child = Child(self._pid, who, ours, verdicts, DoorbellFlag(), tally, "")
        self.family.add(child)
        return child

    def close(self) -> None:
        for each in self._sockets:
            each.close()

    def open(
        self, session: str, server: str, uid: int = ALICE, door: Door = "stub", via: str = ""
    ) -> Child:
        """Add the child of an open session."""
        child = self.connect(uid)
        child.server, child.door, child.via = server, door, via
        child.is_hub = bool(ADMISSIONS.by_server[server].hub)
        child.entry = AuditedSession(session, child.tally)
        return child

    def hub_connects(self, pid: int = SUPERVISOR, uid: int = TOOLS_UID) -> Child:
        return self.connect(uid, pid)
