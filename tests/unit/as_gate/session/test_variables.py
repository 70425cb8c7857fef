"""Variables for a server: from the stub, from a hub's hello, or none; and the agent's umask."""

import os
import socket

import pytest

from mcpwrap.as_gate.agent_identity import AgentIdentity, Door
from mcpwrap.as_gate.session import variables
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import AccessRule
from mcpwrap.linux.unix_socket.peer_credentials import Peer

RULE = AccessRule(uids=(1000,), gids=(), inherits=("TZ",), inherits_any=("TOKEN",))
HELLO = {session_socket.VIA: "3-1"}


def agent(door: Door = "stub", via: str = "") -> AgentIdentity:
    who = Peer(os.getpid(), 1000, frozenset())
    return AgentIdentity(who, door, via=via, hub="tools" if via else "")


def of_hub(hello: dict[str, str], door: Door = "stub") -> dict[str, str]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.setblocking(False)  # noqa: FBT003 - a hub is asked nothing
        found = variables.variables_for(ours, HELLO | hello, agent(door, "3-1"), RULE)
    assert found.pop(session_socket.OF_HUB) == "tools"
    return found


@pytest.mark.parametrize("door", ["stub", "http"])
@pytest.mark.parametrize("hello", [{}, {"TZ": "UTC"}, {"TZ": "UTC", "TOKEN": "a b"}, {"TOKEN": ""}])
def test_a_hub_sends_the_variables_of_its_agent_at_once(hello: dict[str, str], door: Door) -> None:
    assert of_hub(hello, door) == hello


def test_variables_that_a_member_does_not_inherit_end_the_handshake() -> None:
    with pytest.raises(session_socket.ProtocolError, match="not requested"):
        of_hub({"LD_PRELOAD": "/tmp/x.so"})


def test_a_hubs_variable_must_be_of_its_kind() -> None:
    with pytest.raises(RefusalError, match="E-SESSION-VARIABLE"):
        of_hub({"TZ": "$(id)"})


def test_a_stub_is_asked_for_its_variables() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        theirs.send(b"TZ=UTC")
        found = variables.variables_for(ours, {"TOKEN": "unasked"}, agent(), RULE)
        assert found == {"TZ": "UTC"}
        asked = session_socket.decode(theirs.recv(session_socket.MAX_PACKET_BYTES))
        assert asked == session_socket.VariablesRequest(("TZ", "TOKEN"))


@pytest.mark.parametrize(
    ("door", "via", "is_told"),
    [("stub", "", True), ("stub", "3-1", False), ("http", "", False), ("login", "", False)],
)
def test_the_umask_of_the_agents_process_is_passed_on(
    door: Door, via: str, *, is_told: bool
) -> None:
    """That of a hub's supervisor is not its agent's."""
    pidfd = os.pidfd_open(os.getpid())
    before = os.umask(0o727)
    try:
        told = variables.umask_for(agent(door, via), pidfd)
    finally:
        os.umask(before)
        os.close(pidfd)
    assert told == ({"MCPWRAP_UMASK": "0027"} if is_told else {})
