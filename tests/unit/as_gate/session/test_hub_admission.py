"""Admission of a member's session that a hub has opened, and the start of a hub."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpwrap.as_gate.agent_identity import Door
from mcpwrap.as_gate.ipc import hub_packets
from mcpwrap.as_gate.ipc.hub_packets import OuterAgent, OuterQuery
from mcpwrap.as_gate.session import admit, wrapper_client
from mcpwrap.as_gate.session.admit import ChildContext
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.as_gate.session.wrapper_client import StartRequest
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.as_gate.state.start_backoff import Backoff
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.hub import hub_catalogue
from mcpwrap.linux.process.shared_memory import DoorbellFlag
from mcpwrap.linux.unix_socket import fd_passing, memfd
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from tests.unit.as_gate.hub_world import ADMISSIONS, ALICE, BOB, PROGRAM, SUPERVISOR, TOOLS_UID

pytestmark = pytest.mark.usefixtures("hubs")


@contextmanager
def child_of(
    peer: Peer, *answers: OuterAgent | None
) -> Iterator[tuple[ChildContext, socket.socket]]:
    """Yield the context of a session's process, whose monitor has sent these answers already."""
    monitor, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with monitor, child:
        for answer in answers:
            hub_packets.describe_outer(monitor, answer)
        context = ChildContext(
            peer, ADMISSIONS, ToMonitor(child, DoorbellFlag(), Backoff()),
            None, Policies(), None, None, None, None, None,  # type: ignore[arg-type]
        )  # fmt: skip
        yield context, monitor


def alice(door: Door = "stub") -> OuterAgent:
    return OuterAgent("tools", ALICE, frozenset({ALICE}), door)


def test_the_agent_is_that_of_the_hubs_session() -> None:
    with child_of(Peer(SUPERVISOR, TOOLS_UID, frozenset()), alice("http")) as (context, monitor):
        agent = admit._agent("git", "@3-1", context)
        assert hub_packets.decode(monitor.recv(100)) == OuterQuery("3-1")
    assert agent.who == Peer(SUPERVISOR, ALICE, frozenset({ALICE}))
    assert (agent.door, agent.via, agent.hub) == ("http", "3-1", "tools")


@pytest.mark.parametrize(("pid", "uid"), [(PROGRAM, TOOLS_UID), (SUPERVISOR, BOB)])
def test_other_peers_are_refused(pid: int, uid: int) -> None:
    with (
        child_of(Peer(pid, uid, frozenset()), alice()) as (context, _),
        pytest.raises(ValueError, match="only the wrapper"),
    ):
        admit._agent("git", "@3-1", context)


def test_so_is_a_session_that_is_not_open() -> None:
    with (
        child_of(Peer(SUPERVISOR, TOOLS_UID, frozenset()), None) as (context, _),
        pytest.raises(ValueError, match="not open"),
    ):
        admit._agent("git", "@3-1", context)


def test_so_is_a_server_that_is_not_a_member_with_a_reason() -> None:
    with (
        child_of(Peer(SUPERVISOR, TOOLS_UID, frozenset()), alice()) as (context, _),
        pytest.raises(RefusalError, match="E-SESSION-NOT-MEMBER") as refused,
    ):
        admit._agent("notes", "@3-1", context)
    assert refused.value.status is session_socket.Exit.NOT_ALLOWED


@pytest.mark.parametrize("is_hub", [True, False])
def test_a_hub_gets_its_catalogue_as_the_fourth_descriptor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_hub: bool
) -> None:
    monkeypatch.setattr(wrapper_client, "SOCKETS", tmp_path)
    text = hub_catalogue.encode(hub_catalogue.Catalogue(members=()))
    catalogue_fd = memfd.sealed("catalogue", text) if is_hub else None
    stub, _stub = socket.socketpair()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(tmp_path / "tools.sock"))
    listener.listen()
    variables = {session_socket.VIA: "3-1"}
    wanted = StartRequest("tools", ALICE, variables, [], is_direct=False, catalogue_fd=catalogue_fd)
    ours, theirs = wrapper_client._pipes(3)
    with listener, stub, _stub, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as wrapper:
        monkeypatch.setattr(wrapper_client, "_answer", lambda *_: session_socket.ServerStarted())
        wrapper_client._ask_over(wrapper, wanted, stub, theirs)
        connection, _ = listener.accept()
        with connection:
            hello, fds = fd_passing.receive(connection, session_socket.MAX_PACKET_BYTES)
    assert session_socket.decode_hello(session_socket.Protocol.WRAPPER, hello)[1] == variables
    assert len(fds) == (4 if is_hub else 3)
    if catalogue_fd is not None:
        assert memfd.read_all(fds[3]) == text
        os.close(catalogue_fd)
    fd_passing.close_all([*fds, *ours, *theirs])
