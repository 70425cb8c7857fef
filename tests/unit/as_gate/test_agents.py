"""An agent at its own door, and one for whom its listener asks: nobody asks for another."""

import os
import pwd

import pytest

from mcpwrap.as_gate import agents
from mcpwrap.core import hello
from mcpwrap.core.spec import Admission
from mcpwrap.linux.peer import Peer

ALICE, BOB, GUESTS = 1000, 1001, 900
ADMISSION = Admission(uids=(ALICE,), gids=(GUESTS,), inherits=(), http_uids=(BOB,))


@pytest.fixture(autouse=True)
def our_account_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine of the tests has no such account as the listeners'."""
    monkeypatch.setattr(agents, "LISTENERS", pwd.getpwuid(os.getuid()).pw_name)


@pytest.mark.parametrize(
    ("uid", "gids", "may"), [(ALICE, (), True), (BOB, (GUESTS,), True), (BOB, (100,), False)]
)
def test_who_connects_is_who_asks(uid: int, gids: tuple[int, ...], *, may: bool) -> None:
    agent = agents.agent_of(Peer(7, uid, frozenset(gids)), None)
    assert (agent.who.uid, agent.who.pid) == (uid, 7)
    assert agent.may_use(ADMISSION) == may


@pytest.mark.parametrize(("uid", "may"), [(BOB, True), (ALICE, False), (0, False)])
def test_a_listener_asks_for_its_agent_who_brings_no_groups(uid: int, *, may: bool) -> None:
    listener = Peer(7, os.getuid(), frozenset({GUESTS}))
    agent = agents.agent_of(listener, uid)
    assert (agent.who.uid, agent.who.gids) == (uid, frozenset())
    assert agent.may_use(ADMISSION) == may


def test_nobody_else_asks_for_another() -> None:
    with pytest.raises(ValueError, match="only the listener"):
        agents.agent_of(Peer(7, os.getuid() + 1, frozenset()), BOB)


def test_without_the_account_nobody_is_a_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "LISTENERS", "no-such-account")
    with pytest.raises(ValueError, match="only the listener"):
        agents.agent_of(Peer(7, os.getuid(), frozenset()), BOB)


@pytest.mark.parametrize(
    ("said", "uid"), [({}, None), ({hello.AGENT: "1000"}, 1000), ({"TZ": "UTC"}, None)]
)
def test_whom_a_hello_names(said: dict[str, str], uid: int | None) -> None:
    assert agents.uid_in(said) == uid


@pytest.mark.parametrize("text", ["", "-1", "1e3", "+1", " 1", "٣", "1" * 11])
def test_what_is_no_uid(text: str) -> None:
    with pytest.raises(ValueError, match="no UID"):
        agents.uid_in({hello.AGENT: text})
