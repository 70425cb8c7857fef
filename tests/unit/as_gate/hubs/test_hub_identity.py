"""Agent of a hub's session, for the sessions of the hub's members."""

import pytest

from mcpwrap.as_gate.agent_identity import AgentIdentity, Door, claim_in
from mcpwrap.as_gate.hubs import hub_identity
from mcpwrap.as_gate.hubs.hub_identity import OuterSession
from mcpwrap.core.wire import session_socket
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from tests.unit.as_gate.hub_world import (
    ADMISSIONS,
    ALICE,
    BOB,
    CAROL,
    FORGED,
    GUESTS,
    OTHER_SUPERVISOR,
    OTHER_UID,
    PROGRAM,
    SUPERVISOR,
    TOOLS_UID,
)

OUTER = OuterSession("3-1", "tools", Peer(9, ALICE, frozenset({GUESTS})), "stub")


pytestmark = pytest.mark.usefixtures("hubs")


def test_the_supervisor_of_a_hub_acts_for_the_agent_of_its_session() -> None:
    agent = hub_identity.agent_of_hub(Peer(SUPERVISOR, TOOLS_UID, frozenset()), OUTER)
    who = Peer(SUPERVISOR, ALICE, frozenset({GUESTS}))
    assert agent == AgentIdentity(who, "stub", via="3-1", hub="tools")


@pytest.mark.parametrize(
    ("pid", "uid"),
    [
        (SUPERVISOR, OTHER_UID),
        (SUPERVISOR, ALICE),
        (SUPERVISOR, 0),
        (PROGRAM, TOOLS_UID),  # the hub's own program
        (FORGED, TOOLS_UID),  # a group of that name, which the program has made
        (OTHER_SUPERVISOR, TOOLS_UID),
        (75, TOOLS_UID),  # it has ended
    ],
)
def test_no_other_process_does(pid: int, uid: int) -> None:
    with pytest.raises(ValueError, match="only the wrapper of a hub"):
        hub_identity.agent_of_hub(Peer(pid, uid, frozenset()), OUTER)


def test_without_an_open_session_there_is_no_agent() -> None:
    with pytest.raises(ValueError, match="not open"):
        hub_identity.agent_of_hub(Peer(SUPERVISOR, TOOLS_UID, frozenset()), None)


@pytest.mark.parametrize(
    ("hub", "member", "uid", "gids", "door", "why"),
    [
        ("tools", "git", ALICE, (), "stub", ""),
        ("tools", "git", ALICE, (), "http", ""),
        ("tools", "git", BOB, (), "stub", "may not use"),  # an agent of the hub alone
        ("tools", "git", BOB, (GUESTS,), "stub", ""),
        ("tools", "git", BOB, (GUESTS,), "http", "may not use"),  # a listener has no groups
        ("tools", "git", CAROL, (), "http", ""),  # root has found it in the group
        ("tools", "git", CAROL, (), "stub", "may not use"),
        ("tools", "git", ALICE, (), "login", "does not offer"),
        ("tools", "local", ALICE, (), "stub", ""),
        ("tools", "local", ALICE, (), "http", "does not offer 'local' by http"),
        ("tools", "web", ALICE, (), "http", ""),
        ("tools", "web", ALICE, (), "stub", "does not offer 'web' by stdio"),
        ("tools", "notes", ALICE, (), "stub", "not a member"),  # of the other hub
        ("other", "notes", ALICE, (), "stub", ""),
        ("git", "git", ALICE, (), "stub", "not a member"),
        ("none", "git", ALICE, (), "stub", "not a member"),
        ("tools", "gone", ALICE, (), "stub", "there is no server"),
        ("tools", "raw", ALICE, (), "stub", "there is no server"),  # it would not be judged
        ("tools", "other", ALICE, (), "stub", "there is no server"),  # a hub of a hub
    ],
)
def test_members_for_an_agent(
    hub: str, member: str, uid: int, gids: tuple[int, ...], door: Door, why: str
) -> None:
    agent = AgentIdentity(Peer(1, uid, frozenset(gids)), door, via="3-1", hub=hub)
    found = hub_identity.why_not_member(hub, member, agent, ADMISSIONS)
    assert (why in found) if why else not found


@pytest.mark.parametrize(
    ("said", "claim"),
    [
        ({session_socket.VIA: "3-1", "TZ": "UTC"}, "@3-1"),
        ({session_socket.VIA: ""}, "@"),  # no session has that id
    ],
)
def test_the_claim_of_a_hub(said: dict[str, str], claim: str) -> None:
    assert claim_in(said) == claim


@pytest.mark.parametrize("other", [session_socket.AGENT, session_socket.LOGIN])
def test_a_hub_claims_its_session_alone(other: str) -> None:
    with pytest.raises(ValueError, match="a hub cannot claim"):
        claim_in({session_socket.VIA: "3-1", other: "1000"})
