"""Agent of a session: the account that connects, or the one that its listener names."""

import os
import pwd

import msgspec
import pytest

from mcpwrap.as_gate import agent_identity
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import AccessRule
from mcpwrap.linux import accounts
from mcpwrap.linux.unix_socket import peer_credentials
from mcpwrap.linux.unix_socket.peer_credentials import Peer

ALICE, BOB, GUESTS = 1000, 1001, 900
ADMISSION = AccessRule(uids=(ALICE,), gids=(GUESTS,), inherits=(), http_uids=(BOB,))


@pytest.fixture(autouse=True)
def our_account_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the listeners' account and units, which the tests' machine does not have."""
    monkeypatch.setattr(agent_identity, "LISTENERS", pwd.getpwuid(os.getuid()).pw_name)
    units = {7: f"mcpwrap-http@notes.{BOB}.service", 8: "mcpwrap-http@notes.0.service"}
    units |= {9: f"mcpwrap-http@notes.{ALICE}.service"}
    units |= {11: f"mcpwrap-http@notes.{BOB}.web.service"}
    monkeypatch.setattr(peer_credentials, "service_of", lambda pid: (units.get(pid, ""), ""))


@pytest.mark.parametrize(
    ("uid", "gids", "may"), [(ALICE, (), True), (BOB, (GUESTS,), True), (BOB, (100,), False)]
)
def test_without_a_claim_the_peer_is_the_agent(
    uid: int, gids: tuple[int, ...], *, may: bool
) -> None:
    agent = agent_identity.agent_of(Peer(7, uid, frozenset(gids)), "notes", "")
    assert (agent.who.uid, agent.who.pid) == (uid, 7)
    assert agent.may_use(ADMISSION) == may


@pytest.mark.parametrize(("pid", "uid", "may"), [(7, BOB, True), (9, ALICE, False), (8, 0, False)])
def test_a_listener_opens_sessions_for_its_agent_without_groups(
    pid: int, uid: int, *, may: bool
) -> None:
    listener = Peer(pid, os.getuid(), frozenset({GUESTS}))
    agent = agent_identity.agent_of(listener, "notes", str(uid))
    assert (agent.who.uid, agent.who.gids) == (uid, frozenset())
    assert agent.may_use(ADMISSION) == may


def test_other_accounts_cannot_claim_an_agent() -> None:
    with pytest.raises(ValueError, match="only the listener"):
        agent_identity.agent_of(Peer(7, os.getuid() + 1, frozenset()), "notes", str(BOB))


@pytest.mark.parametrize(
    ("pid", "server", "claim"),
    [(9, "notes", str(BOB)), (7, "other", str(BOB)), (10, "notes", str(BOB))],
)
def test_a_listener_cannot_claim_another_agent_or_server(pid: int, server: str, claim: str) -> None:
    with pytest.raises(ValueError, match="only the listener"):
        agent_identity.agent_of(Peer(pid, os.getuid(), frozenset()), server, claim)


def test_without_the_account_there_is_no_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_identity, "LISTENERS", "no-such-account")
    with pytest.raises(ValueError, match="only the listener"):
        agent_identity.agent_of(Peer(7, os.getuid(), frozenset()), "notes", str(BOB))


@pytest.mark.parametrize(
    ("uid", "gids", "has_login", "may"),
    [
        (0, (), True, True),
        (BOB, (GUESTS,), True, True),
        (BOB, (), True, False),
        (ALICE, (), True, False),  # an agent could log in with any identity
        (0, (), False, False),
    ],
)
def test_root_and_approvers_may_log_in_to_servers_with_a_login(
    monkeypatch: pytest.MonkeyPatch, uid: int, gids: tuple[int, ...], *, has_login: bool, may: bool
) -> None:
    monkeypatch.setattr(accounts, "gid_of", {agent_identity.APPROVERS: GUESTS}.get)
    admission = msgspec.structs.replace(ADMISSION, login=has_login)
    agent = agent_identity.agent_of(Peer(7, uid, frozenset(gids)), "notes", agent_identity.LOGIN)
    assert (agent.who.uid, agent.may_use(admission)) == (uid, may)


@pytest.mark.parametrize(
    ("said", "claim"),
    [
        ({}, ""),
        ({session_socket.AGENT: "1000"}, "1000"),
        ({session_socket.LOGIN: "logout"}, "login"),
        ({"TZ": "UTC"}, ""),
    ],
)
def test_what_a_hello_claims(said: dict[str, str], claim: str) -> None:
    assert agent_identity.claim_in(said) == claim


@pytest.mark.parametrize("uid", ["", "login", "@12-1"])  # the last is the claim of a hub
def test_a_listener_must_claim_an_account(uid: str) -> None:
    with pytest.raises(ValueError, match="is not a UID"):
        agent_identity.claim_in({session_socket.AGENT: uid})


def test_a_listener_cannot_request_a_login() -> None:
    with pytest.raises(ValueError, match="cannot request a login"):
        agent_identity.claim_in({session_socket.AGENT: "1000", session_socket.LOGIN: "login"})


@pytest.mark.parametrize("claim", ["-1", "1e3", "+1", " 1", "٣", "1" * 11, "logout"])
def test_other_claims_are_not_uids(claim: str) -> None:
    with pytest.raises(ValueError, match="is not a UID"):
        agent_identity.agent_of(Peer(7, os.getuid(), frozenset()), "notes", claim)


@pytest.mark.parametrize(
    ("urls", "may"), [({"web": "/p"}, True), ({}, False), ({"w": "/p"}, False)]
)
def test_a_further_url_is_that_of_its_own_unit(urls: dict[str, str], *, may: bool) -> None:
    listener = Peer(11, os.getuid(), frozenset())
    agent = agent_identity.agent_of(listener, "notes", f"{BOB}.web")
    assert (agent.who.uid, agent.url_name) == (BOB, "web")
    assert agent.may_use(msgspec.structs.replace(ADMISSION, project_by_url=urls)) is may


@pytest.mark.parametrize(
    ("pid", "claim", "why"),
    [
        (11, str(BOB), "only the listener"),
        (7, f"{BOB}.web", "only the listener"),
        (11, f"{BOB}.other", "only the listener"),
        (11, f"{BOB}.", "no valid name of a URL"),
        (11, f"{BOB}.web.service", "no valid name of a URL"),
        (11, ".web", "is not a UID"),
    ],
)
def test_no_other_unit_claims_it(pid: int, claim: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        agent_identity.agent_of(Peer(pid, os.getuid(), frozenset()), "notes", claim)
