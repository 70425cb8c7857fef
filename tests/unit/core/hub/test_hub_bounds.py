"""Bounds of what one member can take of a hub. Each has a dialogue that stays within it."""

from collections.abc import Callable

import pytest

from mcpwrap.core.hub.member_messages import MAX_ASKED
from mcpwrap.core.hub.rounds import MAX_QUESTIONS, MAX_ROUNDS, MAX_SUSPENDED
from mcpwrap.core.hub.state.flood_meter import MAX_LINES
from mcpwrap.core.hub.subscriptions import MAX_LISTENS
from tests.unit.core.hub.session_player import SessionPlayer, expanded

MEMBERS = ("git", "web")
KNOWN = '{"known":{"capabilities":{"tools":{},"prompts":{}},"tools":[TOOL(log)]}}'
CALL = '{HEAD,"id":%d,"method":"tools/call","params":{"name":"git__log","_meta":{MODERN_ASKS}}}'
QUESTION = '{HEAD,"id":%d,"method":"roots/list"}'


@pytest.fixture
def player() -> SessionPlayer:
    player = SessionPlayer()
    for name in MEMBERS:
        player.act("member", f"{name} {expanded(KNOWN)}")
    return player


@pytest.fixture
def say(player: SessionPlayer) -> Callable[[str, str], list[str]]:
    return lambda who, what: player.act(who, expanded(what))


Say = Callable[[str, str], list[str]]


def test_a_flood_ends_its_member_alone(say: Say) -> None:
    say("handshake", "2025-11-25")
    say("agent", "CALL(1,git__log)")
    say("ready", "git handshake")
    say("agent", "CALL(2,web__log)")
    say("ready", "web handshake")
    noise = '{HEAD,"method":"notifications/message","params":{"level":"info","data":1}}'
    while "close git" not in (said := say("git", noise)):
        assert len(said) == 1
    assert say("git", noise) == []
    assert say("web", "DONE(2)") == [expanded("to agent> DONE(2)")]


def test_a_member_that_logs_much_within_the_bound_is_not_cut(say: Say) -> None:
    say("handshake", "2025-11-25")
    say("agent", "CALL(1,git__log)")
    say("ready", "git handshake")
    noise = '{HEAD,"method":"notifications/message","params":{"level":"info","data":1}}'
    for _ in range(3):
        for _ in range(MAX_LINES):
            assert len(say("git", noise)) == 1
        say("clock", "10")
    assert say("git", "DONE(1)") == [expanded("to agent> DONE(1)")]


def test_a_member_has_a_bound_of_open_questions_and_another_one_has_its_own(say: Say) -> None:
    say("handshake", '2025-11-25 {"roots":{}}')
    for request_id, name in enumerate(MEMBERS, 1):
        say("agent", f"CALL({request_id},{name}__log)")
        say("ready", f"{name} handshake")
    for number in range(MAX_ASKED):
        [asked] = say("git", QUESTION % number)
        assert asked.startswith("to agent> ")
    [refused] = say("git", QUESTION % MAX_ASKED)
    assert refused.startswith("to git> ")
    assert "cannot answer" in refused
    [asked] = say("web", QUESTION % 0)
    assert asked.startswith("to agent> ")


def test_a_flood_in_a_batch_is_cut_in_its_middle(say: Say) -> None:
    say("handshake", "2025-03-26")
    say("agent", "CALL(1,git__log)")
    say("ready", "git handshake")
    noise = ",".join(['{HEAD,"method":"notifications/message","params":{}}'] * (MAX_LINES + 9))
    said = say("git", f"[{noise},DONE(1)]")
    assert len(said) == MAX_LINES + 3
    assert said[MAX_LINES] == "close git"


def test_large_capabilities_end_a_member(say: Say) -> None:
    say("handshake", "2025-11-25")
    say("agent", "CALL(1,git__log)")
    say("opened", "git")
    large = '{HEAD,"id":"mcpwrap-hub/1","result":{"capabilities":{"x":"%s"}}}' % ("x" * 70_000)
    assert "close git" in say("git", large)


def test_questions_for_one_call_are_bounded(say: Say) -> None:
    say("agent", CALL % 1)
    say("ready", "git handshake")
    for number in range(MAX_QUESTIONS):
        assert not any("error" in one for one in say("git", QUESTION % number))
    assert "cannot answer" in say("git", QUESTION % 99)[0]


def test_suspended_calls_are_bounded_and_the_oldest_is_cancelled(say: Say) -> None:
    say("agent", CALL % 0)
    say("ready", "git handshake")
    for number in range(1, MAX_SUSPENDED + 1):
        say("agent", CALL % number)
    said: list[str] = []
    for number in range(MAX_SUSPENDED * MAX_QUESTIONS + 1):  # the oldest call takes all it can
        assert not any("cancelled" in one for one in said)
        said = say("git", QUESTION % number)
        say("clock", "1")
    cancelled = '{HEAD,"method":"notifications/cancelled","params":{"requestId":0,"reason":'
    assert any(one.startswith(expanded(f"to git> {cancelled}")) for one in said)
    assert sum("has not answered" in one for one in said) == MAX_QUESTIONS + 1
    assert say("git", "DONE(0)") == []


def test_suspended_calls_of_members_that_ended_take_no_room(say: Say) -> None:
    for number in range(MAX_SUSPENDED + 1):
        say("agent", CALL % number)
        say("ready", "git handshake")
        assert any("input_required" in one for one in say("git", QUESTION % 1))
        say("ended", "git killed")
        say("clock", "60")
    say("agent", CALL % 999)
    said = say("ready", "git handshake")
    assert [one[:7] for one in said] == ["to git>"]


def test_input_requests_at_once_and_one_after_the_other_are_bounded(say: Say) -> None:
    say("handshake", "2025-11-25 ASKS")
    say("agent", "CALL(1,git__log)")
    say("ready", "git modern")
    many = ",".join(f'"{n}":{{"method":"roots/list"}}' for n in range(MAX_QUESTIONS + 1))
    answer = '{HEAD,"id":%s,"result":{"resultType":"input_required","inputRequests":{%s}}}'
    (said,) = say("git", answer % (1, many))
    assert "over 32 questions at once" in said
    (said,) = say("agent", "CALL(2,git__log)")
    asked_id = "2"
    for _ in range(MAX_ROUNDS):
        (said,) = say("git", answer % (asked_id, ""))
        assert said.startswith("to git> ")
        asked_id = said.partition('"id":')[2].partition(",")[0]
    (said,) = say("git", answer % (asked_id, ""))
    assert "asked 32 times within one call" in said


def test_subscriptions_are_bounded(say: Say) -> None:
    listen = '{HEAD,"id":%d,"method":"subscriptions/listen","params":{"_meta":{MODERN}}}'
    for number in range(MAX_LISTENS):
        (said,) = say("agent", listen % number)
        assert "acknowledged" in said
    (said,) = say("agent", listen % 99)
    assert "too many subscriptions" in said


def test_an_agent_that_closes_leaves_no_list_waiting(say: Say, player: SessionPlayer) -> None:
    say("handshake", "2025-11-25")
    say("agent", CALL % 1)
    say("ready", "git handshake")
    say("closed", "")
    assert player.hub.is_waited_for()
    say("git", "DONE(1)")
    assert not player.hub.is_waited_for()
