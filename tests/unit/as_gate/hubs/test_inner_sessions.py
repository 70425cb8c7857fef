"""Sessions of hubs' members, in the monitor: agent, counts, and end."""

import os
import signal
import subprocess

import pytest

from mcpwrap.as_gate.hubs import inner_sessions
from mcpwrap.as_gate.hubs.inner_sessions import InnerSessions
from mcpwrap.as_gate.ipc.hub_packets import OuterAgent
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from tests.unit.as_gate.hub_world import (
    ALICE,
    BOB,
    OTHER_SUPERVISOR,
    OTHER_UID,
    PROGRAM,
    SUPERVISOR,
    TOOLS_UID,
    GivenAccessList,
    HubWorld,
)

TOOLS = Peer(SUPERVISOR, TOOLS_UID, frozenset())


@pytest.fixture
def inner(hubs: HubWorld) -> InnerSessions:
    return InnerSessions(hubs.family, GivenAccessList().as_file())


def test_a_hub_learns_the_agent_of_its_own_session(hubs: HubWorld, inner: InnerSessions) -> None:
    hubs.open("3-1", "tools", ALICE, "http")
    hubs.open("3-2", "other", BOB)
    assert inner.describe(TOOLS, "3-1") == OuterAgent("tools", ALICE, frozenset({ALICE}), "http")
    other = Peer(OTHER_SUPERVISOR, OTHER_UID, frozenset())
    assert inner.describe(other, "3-2") == OuterAgent("other", BOB, frozenset({BOB}), "stub")


@pytest.mark.parametrize(
    ("peer", "session"),
    [
        (TOOLS, "3-2"),  # of another hub
        (TOOLS, "3-3"),  # of no hub
        (TOOLS, "3-4"),  # of a member
        (TOOLS, "3-9"),  # not open
        (TOOLS, ""),
        (Peer(PROGRAM, TOOLS_UID, frozenset()), "3-1"),
        (Peer(SUPERVISOR, ALICE, frozenset()), "3-1"),
        (Peer(OTHER_SUPERVISOR, OTHER_UID, frozenset()), "3-1"),
    ],
)
def test_it_learns_of_no_other(
    hubs: HubWorld, inner: InnerSessions, peer: Peer, session: str
) -> None:
    hubs.open("3-1", "tools")
    hubs.open("3-2", "other")
    hubs.open("3-3", "git")
    hubs.open("3-4", "git", via="3-1")
    hubs.connect(TOOLS_UID, SUPERVISOR)
    assert inner.describe(peer, session) is None
    with pytest.raises(ValueError, match=r"not open|only the wrapper"):
        inner.agent_of(peer, "git", f"@{session}")


def test_a_claim_leads_to_the_agent_of_the_session(hubs: HubWorld, inner: InnerSessions) -> None:
    hubs.open("3-1", "tools", ALICE, "http")
    agent = inner.agent_of(TOOLS, "git", "@3-1")
    assert (agent.who.uid, agent.who.pid, agent.door) == (ALICE, SUPERVISOR, "http")
    assert (agent.via, agent.hub) == ("3-1", "tools")


@pytest.mark.parametrize("server", ["notes", "local", "tools", "raw"])
def test_a_claim_leads_to_members_only(hubs: HubWorld, inner: InnerSessions, server: str) -> None:
    hubs.open("3-1", "tools", ALICE, "http")
    with pytest.raises(ValueError, match=r"not a member|does not offer|no server"):
        inner.agent_of(TOOLS, server, "@3-1")


def test_sessions_of_members_do_not_count_for_their_agent(
    monkeypatch: pytest.MonkeyPatch, hubs: HubWorld, inner: InnerSessions
) -> None:
    monkeypatch.setattr(inner_sessions, "MAX_PER_UID", 2)
    hubs.open("3-1", "tools")
    for number in range(3):
        hubs.open(f"3-{2 + number}", "git", via="3-1")
    assert inner.why_no_connection(ALICE) == ""
    hubs.open("3-9", "git")
    assert "E-SESSION-LIMIT-ACCOUNT" in inner.why_no_connection(ALICE)
    assert inner.why_no_connection(BOB) == ""


def test_a_hub_is_not_held_to_the_limit_of_an_agent_but_to_that_of_hubs(
    monkeypatch: pytest.MonkeyPatch, hubs: HubWorld, inner: InnerSessions
) -> None:
    monkeypatch.setattr(inner_sessions, "MAX_PER_UID", 1)
    monkeypatch.setattr(inner_sessions, "MAX_INNER", 3)
    hubs.open("3-1", "tools")
    hubs.open("3-2", "git", BOB, via="3-1")
    for _ in range(2):
        assert inner.why_no_connection(TOOLS_UID) == ""
        hubs.hub_connects()
    for uid in (TOOLS_UID, OTHER_UID):
        assert "E-SESSION-LIMIT-HUBS" in inner.why_no_connection(uid)
    assert inner.why_no_connection(BOB) == ""  # direct users have room


def test_hubs_are_those_of_the_current_access_list(hubs: HubWorld) -> None:
    given = GivenAccessList()
    inner = InnerSessions(hubs.family, given.as_file())
    assert inner._hub_uids() == {TOOLS_UID, OTHER_UID}
    given.admissions = type(given.admissions)()
    assert inner._hub_uids() == frozenset()


def test_a_session_of_a_hub_has_one_of_each_member(hubs: HubWorld, inner: InnerSessions) -> None:
    hubs.open("3-1", "tools")
    hubs.open("3-2", "tools")
    processes = {}
    for via, server in (("3-1", "git"), ("3-1", "local"), ("3-2", "git"), ("", "git")):
        child = hubs.connect(ALICE)
        process = subprocess.Popen(["sleep", "600"])
        child.pid, child.via, child.server = process.pid, via, server
        hubs.family.add(child)
        processes[via, server] = process
    inner.end_older(inner.agent_of(TOOLS, "git", "@3-1"), "git")
    assert processes.pop(("3-1", "git")).wait() == -signal.SIGKILL
    for process in processes.values():
        assert process.poll() is None
        process.kill()
        process.wait()


def test_the_hubs_of_one_account_leave_room_for_others(
    monkeypatch: pytest.MonkeyPatch, hubs: HubWorld, inner: InnerSessions
) -> None:
    monkeypatch.setattr(inner_sessions, "MAX_INNER_PER_UID", 1)
    hubs.open("3-1", "tools", ALICE)
    hubs.open("3-2", "other", BOB)
    hubs.open("3-3", "local", ALICE, via="3-1")
    assert "E-SESSION-LIMIT-HUBS" in inner.why_full(inner.agent_of(TOOLS, "git", "@3-1"))
    other = Peer(OTHER_SUPERVISOR, OTHER_UID, frozenset())
    assert inner.why_full(inner.agent_of(other, "notes", "@3-2")) == ""


def test_the_end_of_a_hubs_session_ends_those_of_its_members(
    hubs: HubWorld, inner: InnerSessions
) -> None:
    outer, other = hubs.open("3-1", "tools"), hubs.open("3-2", "tools")
    processes = {}
    for via in ("3-1", "3-2", ""):
        child = hubs.connect(ALICE)
        process = subprocess.Popen(["sleep", "600"])
        child.pid, child.via, child.server = process.pid, via, "git"
        hubs.family.add(child)
        processes[via] = process
    inner.end_with(outer)
    assert processes["3-1"].wait() == -signal.SIGKILL
    assert [processes[via].poll() for via in ("3-2", "")] == [None, None]
    inner.end_with(hubs.connect(ALICE))  # without a session
    inner.end_with(other)
    assert processes["3-2"].wait() == -signal.SIGKILL
    assert processes[""].poll() is None
    os.kill(processes[""].pid, signal.SIGKILL)
    processes[""].wait()
