"""Rules of a server are sent to its agents and to approvers, and to no other account."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpwrap.core.wire.approval_socket import RulesReply, RulesRequest
from mcpwrap.core.wire.server_files import AccessList, AccessRule, HubMemberRule
from mcpwrap.linux.unix_socket import memfd
from tests.unit.as_gate.approving_world import GROUP, WEB_UID, World

ALICE, AGENTS = 1000, 60
RULES = AccessList(
    by_server={
        "git": AccessRule(uids=(ALICE,), gids=(AGENTS,), inherits=(), http_uids=(1002,)),
        "tools": AccessRule(
            uids=(ALICE,), gids=(), inherits=(), hub=(HubMemberRule(name="git", namespace="g"),)
        ),
        "broken": AccessRule(uids=(ALICE,), gids=(), inherits=(), sessions=1),
    }
)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(tmp_path, monkeypatch)
    made.admissions.admissions = RULES
    yield made
    made.close()


@pytest.mark.parametrize(
    ("uid", "gids", "server", "sees"),
    [
        (ALICE, (), "git", True),
        (ALICE, (), "tools", True),  # a hub has rules of its own
        (1001, (AGENTS,), "git", True),
        (1002, (), "git", True),  # by a listener
        (0, (), "git", True),
        (1003, (GROUP,), "git", True),
        (WEB_UID, (), "git", True),
        (1003, (), "git", False),
        (1001, (AGENTS,), "tools", False),  # an agent of another server
        (0, (), "nothing", False),
    ],
)
def test_an_account_may_list_the_rules(
    world: World, uid: int, gids: tuple[int, ...], server: str, *, sees: bool
) -> None:
    person = world.somebody(uid, *gids)
    for _ in range(3):
        (reply,) = person.says(RulesRequest(server))
        assert isinstance(reply, RulesReply) == sees
    assert [memfd.read_all(fd) for fd in person.fds] == [server.encode()] * (3 * sees)


def test_a_refusal_is_that_of_a_session(world: World) -> None:
    reply = world.somebody(ALICE).asks(RulesRequest("broken"))
    assert reply == "gone: no policy [E-SESSION-POLICY]"
    stranger = world.somebody(1003).asks(RulesRequest("broken"))
    assert stranger == "gone: broken is not a server that this account may use"
