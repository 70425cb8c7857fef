"""Packets about hubs, in the monitor: it trusts no session's process with an agent or a count."""

import socket
from contextlib import suppress
from typing import cast

import pytest
from msgspec.structs import replace

from mcpwrap.as_gate.approvals.broker import ApprovalBroker
from mcpwrap.as_gate.hubs import inner_sessions
from mcpwrap.as_gate.ipc import hub_packets, packets
from mcpwrap.as_gate.ipc.hub_packets import DefinitionsRequest, DefinitionsWritten, OuterQuery
from mcpwrap.as_gate.ipc.packets import ChannelError, SessionNamed
from mcpwrap.as_gate.monitor.dispatch import MonitorDispatcher
from mcpwrap.as_gate.state.audit_writer import AuditWriter
from mcpwrap.as_gate.state.children import Child
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.core.wire.server_files import AccessList
from mcpwrap.linux.process.shared_memory import SharedCounters
from mcpwrap.linux.unix_socket import fd_passing
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from tests.unit.as_gate.hub_world import (
    ADMISSIONS,
    ALICE,
    BOB,
    OTHER_SUPERVISOR,
    OTHER_UID,
    PROGRAM,
    TOOLS_UID,
    GivenAccessList,
    HubWorld,
)


class FullAudit:
    """Audit that records no session; what it was asked for is known."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def open(self, server: str, who: Peer, _tally: SharedCounters) -> None:
        self.asked.append((server, who.uid))


class Gate:
    """Monitor without its loop: a packet, and the answer."""

    def __init__(self, hubs: HubWorld) -> None:
        self._hubs = hubs
        self.audit = FullAudit()
        self.access_list = GivenAccessList()
        self.dispatcher = MonitorDispatcher(
            hubs.family, self.access_list.as_file(), Policies(),
            cast("AuditWriter", self.audit), cast("ApprovalBroker", None),
        )  # fmt: skip

    def send(self, child: Child, packet: bytes) -> bytes:
        self.dispatcher.dispatch(child, packet)
        with suppress(BlockingIOError):
            answer, fds = fd_passing.receive(self._hubs.theirs, 8192, socket.MSG_DONTWAIT)
            fd_passing.close_all(fds)
            return answer + b"+" * len(fds)
        return b""

    def name(self, child: Child, server: str, claim: str = "") -> bytes:
        return self.send(child, packets.encode(SessionNamed(server, claim)))


@pytest.fixture
def gate(hubs: HubWorld) -> Gate:
    return Gate(hubs)


def test_a_session_of_a_member_is_that_of_the_hubs_agent(hubs: HubWorld, gate: Gate) -> None:
    hubs.open("3-1", "tools", ALICE, "http")
    child = hubs.hub_connects()
    assert gate.name(child, "git", "@3-1") == b"X"
    assert gate.audit.asked == [("git", ALICE)]
    assert (child.who.uid, child.server, child.door, child.via) == (ALICE, "git", "http", "3-1")
    assert not child.is_hub


def test_a_session_of_a_hub_is_known_as_one(hubs: HubWorld, gate: Gate) -> None:
    child = hubs.connect(ALICE)
    gate.name(child, "tools")
    assert (child.server, child.via, child.is_hub) == ("tools", "", True)


@pytest.mark.parametrize(
    ("pid", "uid", "server", "claim"),
    [
        (PROGRAM, TOOLS_UID, "git", "@3-1"),
        (OTHER_SUPERVISOR, OTHER_UID, "git", "@3-1"),
        (1, ALICE, "git", "@3-1"),
        (71, TOOLS_UID, "git", "@3-2"),  # of the other hub
        (71, TOOLS_UID, "git", "@3-9"),  # not open
        (71, TOOLS_UID, "notes", "@3-1"),  # not a member
        (71, TOOLS_UID, "git", "@3-3"),  # its agent is not one of this member
        (71, TOOLS_UID, "git", ""),
        (71, TOOLS_UID, "git", str(ALICE)),
    ],
)
def test_a_process_that_lies_about_it_is_ended(
    hubs: HubWorld, gate: Gate, pid: int, uid: int, server: str, claim: str
) -> None:
    hubs.open("3-1", "tools")
    hubs.open("3-2", "other")
    hubs.open("3-3", "tools", BOB)
    child = hubs.hub_connects(pid, uid)
    with pytest.raises(ValueError):  # noqa: PT011 - each of them ends it
        gate.name(child, server, claim)
    assert (child.server, child.via, gate.audit.asked) == ("", "", [])


def test_counts_are_kept_by_the_monitor(
    monkeypatch: pytest.MonkeyPatch, hubs: HubWorld, gate: Gate
) -> None:
    hubs.open("3-1", "tools")
    hubs.open("3-2", "git", via="3-1")
    monkeypatch.setattr(inner_sessions, "MAX_INNER_PER_UID", 1)
    assert b"E-SESSION-LIMIT-HUBS" in gate.name(hubs.hub_connects(), "local", "@3-1")
    monkeypatch.setattr(inner_sessions, "MAX_INNER_PER_UID", 2)
    assert gate.name(hubs.hub_connects(), "local", "@3-1") == b"X"


@pytest.mark.parametrize(("via", "answer"), [("3-1", b"X"), ("", b"B"), ("3-2", b"B")])
def test_a_members_session_that_is_replaced_does_not_count_in_its_agents_share(
    hubs: HubWorld, gate: Gate, via: str, answer: bytes
) -> None:
    """Two sessions, of which one is reserved for another account."""
    rule = replace(ADMISSIONS.by_server["git"], sessions=2)
    gate.access_list.admissions = AccessList(by_server={**ADMISSIONS.by_server, "git": rule})
    hubs.open("3-1", "tools")
    hubs.open("3-2", "tools")
    hubs.open("3-3", "git", via=via)
    assert gate.name(hubs.hub_connects(), "git", "@3-1")[:1] == answer


def test_the_agent_of_a_hubs_session_is_told_before_a_session_is_named(
    hubs: HubWorld, gate: Gate
) -> None:
    hubs.open("3-1", "tools")
    ask = hub_packets.encode(OuterQuery("3-1"))
    child = hubs.hub_connects()
    told = hub_packets.decode_outer(gate.send(child, ask))
    assert told is not None
    assert told.uid == ALICE
    gate.name(child, "git", "@3-1")
    assert gate.send(child, ask) == b"V"
    assert gate.send(hubs.connect(BOB), ask) == b"V"


@pytest.mark.parametrize(("server", "is_kept"), [("git", True), ("tools", False)])
def test_definitions_are_kept_of_members_alone(
    hubs: HubWorld, gate: Gate, server: str, *, is_kept: bool
) -> None:
    child = hubs.open("3-1", server)
    request = hub_packets.encode(DefinitionsRequest())
    written = hub_packets.encode(DefinitionsWritten())
    assert gate.send(child, request) == (b"D+" if is_kept else b"D")
    if is_kept:
        gate.send(child, written)
        assert list(gate.dispatcher.definitions._waiting) == [(ALICE, "git")]
        fd_passing.close_all(list(gate.dispatcher.definitions._waiting.values()))
    with pytest.raises(ChannelError, match="no definitions"):
        gate.send(child, written)


def test_no_definitions_are_kept_before_a_session_is_named(hubs: HubWorld, gate: Gate) -> None:
    assert gate.send(hubs.connect(ALICE), hub_packets.encode(DefinitionsRequest())) == b"D"


def test_the_project_of_a_session_is_reported_once(hubs: HubWorld, gate: Gate) -> None:
    seen = packets.StartSucceeded("0123456789abcdef", "/home/alice/src/a")
    child = hubs.connect(ALICE)
    with pytest.raises(ChannelError, match="before it named"):
        gate.send(child, packets.encode(seen))
    assert child.project == ""
    gate.name(child, "git")
    gate.send(child, packets.encode(seen))
    assert (child.wrapper_id, child.project) == ("0123456789abcdef", "/home/alice/src/a")
    with pytest.raises(ChannelError, match="or twice"):
        gate.send(child, packets.encode(packets.StartSucceeded("0123456789abcdef", "/other")))
    assert child.project == "/home/alice/src/a"
