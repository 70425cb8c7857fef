"""Approvals of `mcpwrap run`: one queue, answered over its socket or by the agent's own window."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcpwrap.core.approval.approval_rule import RuleRequest, TickedArgument
from mcpwrap.core.approval.client_forms import PERSON_S, ClientIdentity
from mcpwrap.core.wire.approval_socket import (
    Channel,
    DecideRequest,
    Pending,
    Scope,
    Verdict,
)
from mcpwrap.gate_client.approvals import ApprovalConnection, ApprovalRefusedError
from mcpwrap.gate_client.user_approvals import UserApprovalConnections
from mcpwrap.session.approvals.user_rules import UserRules
from tests.shared import pace
from tests.unit.as_agent.run.approvals.one_run import Run

TRIAL = ClientIdentity("trial", "1")


Begin = Callable[..., Run]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Begin runs that end with the test."""
    begun: list[Run] = []

    def one(expires_s: float | None = None) -> Run:
        begun.append(Run(tmp_path, len(begun) + 1, expires_s))
        return begun[-1]

    yield one
    for run in begun:
        run.ends()


@contextmanager
def user(*runs: Run) -> Iterator["User"]:
    """Lend the connections of the user of these runs."""
    folder, rules = runs[0].socket.parent, runs[0].rules
    with (
        UserApprovalConnections(folder, rules) as asks,
        UserApprovalConnections(folder, rules) as watches,
    ):
        watches.watch()
        yield User(asks, watches)


@dataclass(frozen=True)
class User:
    """User with a connection for requests, and one that receives changes."""

    asks: UserApprovalConnections
    watches: UserApprovalConnections

    def pending(self, count: int = 1) -> tuple[Pending, ...]:
        """Return the pending questions, once there are so many."""
        end_s = time.monotonic() + pace.WAIT_S
        while len(found := self.asks.listing().pending) != count and time.monotonic() < end_s:
            self.watches.next_listing()
        assert len(found) == count
        return found


def decide(one: Pending, verdict: Verdict = Verdict.APPROVE, **more: Any) -> DecideRequest:
    return DecideRequest(id=one.id, digest=one.digest, verdict=verdict, **more)


def saved(*ticked: TickedArgument, **bounds: Any) -> dict[str, Any]:
    rule = RuleRequest(ticked=ticked, **bounds)
    return {"scope": Scope.RULE, "rule": msgspec.json.encode(rule).decode()}


def test_a_call_waits_until_its_user_answers(begin: Begin) -> None:
    run = begin()
    run.calls(1, id=7)
    run.calls(2, id=8)
    run.calls(3, "read")
    assert run.server_reads()["id"] == 3  # what needs no approval passes meanwhile
    with user(run) as person:
        first, second = person.pending(2)
        assert person.asks.show(first.id).question.params["arguments"] == {"id": 7}
        assert person.asks.decide(decide(first)).text == f"{first.id} is approved"
        assert run.server_reads()["id"] == 1
        person.asks.decide(decide(second, Verdict.DENY, reason=b"not today"))
        assert "denied by root (command): not today" in run.text_read()
        assert person.pending(0) == ()
        with pytest.raises(ApprovalRefusedError, match="no pending request"):
            person.asks.decide(decide(first))
    assert [(one.outcome, one.shown) for one in run.audit.answers] == [
        ("approved", first.digest), ("denied", second.digest)
    ]  # fmt: skip
    assert run.told[0].endswith(
        f"waits for approval {first.id}: mcpwrap approvals --user show {first.id}"
    )
    assert run.told[-1].startswith(f"mcpwrap: approval {second.id}: the call is refused")


def test_the_decision_is_on_what_was_shown(begin: Begin) -> None:
    run = begin()
    run.calls(1, id=7)
    with user(run) as person:
        [one] = person.pending()
        with pytest.raises(ApprovalRefusedError, match="answers by its form"):
            person.asks.decide(decide(one, channel=Channel.CLIENT))
        other = msgspec.structs.replace(decide(one), digest="0" * 64)
        with pytest.raises(ApprovalRefusedError, match="not the pending one"):
            person.asks.decide(other)
        run.audit.is_broken = True
        with pytest.raises(ApprovalRefusedError, match="audit cannot be written"):
            person.asks.decide(decide(one))
        assert [each.id for each in person.asks.listing().pending] == [one.id]


def test_of_several_runs_there_is_one_list(tmp_path: Path, begin: Begin) -> None:
    one, other = begin(), begin()
    (tmp_path / "sockets/3.sock").touch()  # of one that was killed
    one.calls(1)
    with user(one, other) as person:
        person.pending(1)
        other.calls(1, t="x")
        first, second = person.pending(2)
        person.asks.decide(decide(second))
        assert other.server_reads()["params"]["arguments"] == {"t": "x"}
        one.serving.close()  # with its question
        assert person.pending(0) == ()
        with pytest.raises(ApprovalRefusedError, match="no pending request"):
            person.asks.decide(decide(first))
    assert sorted(path.name for path in (tmp_path / "sockets").iterdir()) == ["2.sock"]


def test_a_rule_is_followed_by_all_runs_and_ends(begin: Begin) -> None:
    one, other = begin(), begin()
    one.calls(1, id=1, of="a")
    with user(one, other) as person:
        [asked] = person.pending()
        done = person.asks.decide(decide(asked, **saved(TickedArgument("id"), times=2)))
        assert done.text.startswith(f"{asked.id} is approved, rule ")
        [rule] = person.asks.saved_rules()
        assert one.server_reads()["id"] == 1
        other.calls(1, id=2, of="a")
        assert other.server_reads()["id"] == 1
        other.calls(2, id=2, of="b")  # not ticked
        [differs] = person.pending()
        assert person.asks.show(differs.id).question.params["arguments"] == {"id": 2, "of": "b"}
        one.calls(2, id=3, of="a")
        assert one.server_reads()["id"] == 2
        assert person.asks.saved_rules() == []  # used up
        one.calls(3, id=4, of="a")
        person.pending(2)
    assert [(change.outcome, change.rule) for change in one.audit.changes] == [("saved", rule.id)]
    by = [record.by for record in one.audit.records.written]
    assert f"rule {rule.id} of root (command)" in by


def test_a_rule_is_revoked_and_one_of_a_session_stays_in_it(tmp_path: Path, begin: Begin) -> None:
    run = begin()
    run.calls(1, id=1)
    with user(run) as person:
        [asked] = person.pending()
        with pytest.raises(ApprovalRefusedError, match="needs a bound"):
            person.asks.decide(decide(asked, **saved()))
        twice: dict[str, Any] = {"scope": Scope.RULE, "rule": '{"times":1,"times":9999}'}
        with pytest.raises(ApprovalRefusedError, match="not in canonical form"):
            person.asks.decide(decide(asked, **twice))
        assert run.audit.answers == []  # nothing was approved
        person.asks.decide(decide(asked, **saved(TickedArgument("id"), in_session=True)))
        assert run.server_reads()["id"] == 1
        run.calls(2, id=2)
        assert run.server_reads()["id"] == 2
        [rule] = person.asks.saved_rules()
        assert list((tmp_path / "rules").glob("*.json")) == []
        assert person.asks.revoke(rule.id).text == f"rule {rule.id} is revoked"
        with pytest.raises(ApprovalRefusedError, match="no approval rule"):
            person.asks.revoke(rule.id)
        run.calls(3, id=2)
        [again] = person.pending()
        person.asks.decide(decide(again, **saved(for_s=60)))
        [stored] = person.asks.saved_rules()
        person.asks.revoke(stored.id)
        assert person.asks.saved_rules() == []


def test_without_a_folder_of_rules_each_call_is_asked(tmp_path: Path, begin: Begin) -> None:
    (tmp_path / "rules").touch()
    run = begin()
    run.calls(1, id=1)
    with user(run) as person:
        [asked] = person.pending()
        assert person.asks.saved_rules() == []
        person.asks.decide(decide(asked))
    assert run.server_reads()["id"] == 1


def test_the_socket_of_a_busy_run_stays(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as busy:  # which accepts nothing
        busy.bind(str(tmp_path / "1.sock"))
        busy.listen(0)
        with ExitStack() as waiting:
            for _ in range(3):
                raw = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                waiting.enter_context(raw).settimeout(0.0)
                with suppress(BlockingIOError):
                    raw.connect(str(tmp_path / "1.sock"))
            person = UserApprovalConnections(tmp_path, UserRules(tmp_path / "rules"))
            with person, pytest.raises(ApprovalRefusedError, match="no pending request"):
                person.show("0000")
    assert (tmp_path / "1.sock").exists()


def test_a_question_expires(begin: Begin) -> None:
    run = begin(expires_s=0.2)
    run.calls(1)
    assert "no approver answered in time" in run.text_read()


def test_denied_and_stopped_ends_the_server(begin: Begin) -> None:
    run = begin()
    run.calls(1)
    with user(run) as person:
        person.asks.decide(decide(person.pending()[0], Verdict.DENY_AND_STOP))
    assert run.stopped.wait(pace.WAIT_S)


@pytest.mark.parametrize(
    ("answer", "after_s", "passes"),
    [
        ({"action": "accept", "content": {"approve": True}}, PERSON_S, True),
        ({"action": "decline"}, PERSON_S, False),
        ({"action": "accept", "content": {"approve": False}}, PERSON_S, False),
        ({"action": "accept", "content": {"approve": True}}, 0.0, None),  # no person was so fast
        ({"action": "decline"}, 0.0, None),
        ({"action": "cancel"}, PERSON_S, None),
        ({"action": "accept", "content": {}}, PERSON_S, None),
    ],
)
def test_the_agents_own_window_asks_too(
    begin: Begin, answer: dict[str, Any], after_s: float, *, passes: bool | None
) -> None:
    run = begin()
    run.begins()
    run.calls(1, id=7)
    form = run.agent_reads()
    assert form["method"] == "elicitation/create"
    assert form["params"]["message"].startswith(
        "mcpwrap asks for your approval (server notes, rule"
    )
    field = form["params"]["requestedSchema"]["properties"]["approve"]
    assert '"id": 7' in field["description"]
    time.sleep(after_s)  # a person reads the question first
    run.sends({"id": form["id"], "result": answer})
    run.calls(2, "read")
    if passes is None:  # it is still asked elsewhere, and counts as no denial
        assert run.server_reads()["id"] == 2  # so the answer was taken
        with user(run) as person:
            person.asks.decide(decide(person.pending()[0]))
        assert run.audit.answers[0].channel == "command"
    else:
        assert run.audit.answers == [] or run.audit.answers[0].channel == "client"
    if passes is False:
        assert "denied by root in the agent's own window" in run.text_read()
    elif passes is True:
        assert {run.server_reads()["id"], run.server_reads()["id"]} == {1, 2}
    else:
        assert run.server_reads()["id"] == 1
    is_by_itself = passes is None and after_s == 0
    assert run.forms.may_draw(TRIAL) is not is_by_itself


def test_a_client_that_answers_by_itself_is_not_asked_again(begin: Begin) -> None:
    run = begin()
    run.begins()
    run.calls(1)
    run.sends({"id": run.agent_reads()["id"], "error": {"code": -32601, "message": "no"}})
    with user(run) as person:
        [first] = person.pending()
        run.calls(2, t="x")
        _, second = person.pending(2)
        person.asks.decide(decide(first, Verdict.DENY))
        person.asks.decide(decide(second, Verdict.DENY))
    assert [run.agent_reads()["id"], run.agent_reads()["id"]] == [1, 2]  # and no form between


def test_what_a_new_policy_allows_goes_on(begin: Begin) -> None:
    run = begin()
    run.calls(1)
    with user(run) as person:
        person.pending()
        run.policy.reload()  # of no file: the default policy alone, which has no rule for it
        assert run.server_reads()["id"] == 1
        assert person.pending(0) == ()


def test_what_has_no_meaning_here_is_refused(begin: Begin) -> None:
    run = begin()
    with ApprovalConnection(str(run.socket)) as connection:
        with pytest.raises(ApprovalRefusedError, match="neither pins, passwords"):
            connection.login("root", b"x")
        with pytest.raises(ApprovalRefusedError, match="no pending request"):
            connection.show("0000")
        with pytest.raises(ApprovalRefusedError, match="no pending request"):
            connection.decide(DecideRequest(id="0000", digest="", verdict=Verdict.DENY))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as raw:
        raw.connect(str(run.socket))
        raw.send(b"what is this")
        assert b"a packet of an unknown kind" in raw.recv(1000)
    assert oct(run.socket.stat().st_mode)[-3:] == "600"
    assert oct(run.socket.parent.stat().st_mode)[-3:] == "700"
