"""Approval queue: only an approved call runs, and no more often than approved."""

from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpwrap.core.approval import queue
from mcpwrap.core.approval.entry import (
    MAX_AWAY,
    AlreadyApproved,
    ApprovalNotice,
    ApprovalSubject,
    QuestionRejected,
    QueuedQuestion,
)
from mcpwrap.core.approval.queue import MAX_OF_AGENT, MAX_WAITING, ApprovalQueue
from mcpwrap.core.approval.throttle import MAX_DENIALS, MAX_NEW
from mcpwrap.core.wire.approval_socket import MINUTES, DecideRequest, Scope, Verdict

EXPIRES_S = 300.0
TOOL = (1000, "sqlite", "tools/call", "drop")


def about(digest: str, agent_uid: int = 1000) -> ApprovalSubject:
    return ApprovalSubject(
        digest=digest,
        size=10,
        agent_uid=agent_uid,
        server="sqlite",
        session="12-1",
        method="tools/call",
        target="drop",
        rule="writes",
        message="",
        expires_s=EXPIRES_S,
    )


def decide(
    id_: str, digest: str, verdict: str, scope: str = "once", times: int = 1
) -> DecideRequest:
    return DecideRequest(
        id=id_,
        digest=digest,
        verdict=Verdict(verdict),
        scope=Scope(scope),
        times=times,
        reason=b"no" if verdict != "approve" else b"",
    )


@dataclass
class Story:
    """Approval queue, and events as text; a request is SESSION.NUMBER."""

    now_s: float = 1000.0
    book: ApprovalQueue = field(init=False)

    def __post_init__(self) -> None:
        numbers = count(1)
        self.book = ApprovalQueue(lambda: f"q{next(numbers)}")

    def tell(self, event: str) -> str:
        match event.split():
            case ["asks", one, digest]:
                session, hold = map(int, one.split("."))
                return self.asked(self.book.ask(session, hold, about(digest), self.now_s))
            case [("cancels" | "leaves") as how, one]:
                session, hold = map(int, one.split("."))
                self.book.withdraw(session, hold, will_resume=how == "leaves")
                return ""
            case ["ends", session]:
                self.book.is_over(int(session))
                return ""
            case [("void" | "again") as how]:
                again = how == "again"
                return said(self.book.judge_again(TOOL) if again else self.book.void())
            case ["after", seconds]:
                self.now_s += float(seconds)
                return said(self.book.expire(self.now_s))
            case [verdict, id_, digest, *scope]:
                return self.decided(decide(id_, digest, verdict, *as_scope(scope)))
            case _:
                pytest.fail(event)

    def asked(self, answer: AlreadyApproved | QueuedQuestion | QuestionRejected) -> str:
        match answer:
            case AlreadyApproved(id_, by):
                return f"{id_} by {by}"
            case QueuedQuestion(id_, is_new):
                return f"new {id_}" if is_new else id_
            case QuestionRejected(why):
                return why

    def decided(self, answer: DecideRequest) -> str:
        fault = self.book.fault(answer, self.now_s)
        return fault.code if fault else said(self.book.decide(answer, "bob", self.now_s))


def as_scope(words: list[str]) -> tuple[str, int] | tuple[()]:
    return (words[0], int(words[1])) if words else ()


def said(told: list[ApprovalNotice]) -> str:
    return ", ".join(f"{one.session}.{one.hold} {one.what}{'!' * one.stops}" for one in told)


@pytest.mark.parametrize(
    "story",
    [
        # Identical requests share one question, and a decision covers one of them.
        [
            ("asks 1.1 a", "new q1"), ("asks 1.2 a", "q1"), ("asks 2.1 a", "q1"),
            ("asks 1.3 b", "new q2"),
            ("approve q1 a", "1.1 approved, 1.2 denied, 2.1 denied"),
            ("approve q1 a", "gone"), ("approve q2 a", "changed"), ("approve q9 a", "gone"),
            ("asks 1.4 a", "new q3"),
        ],
        # As many run as were approved: held requests first, and only of the sessions that asked.
        [
            ("asks 1.1 a", "new q1"), ("asks 2.1 a", "q1"),
            ("approve q1 a session 4", "1.1 approved, 2.1 approved"),
            ("asks 1.2 a", "q1 by bob"), ("asks 3.1 a", "new q2"), ("asks 2.2 a", "q1 by bob"),
            ("asks 1.3 a", "q2"),
        ],
        # A decision for one session keeps the approvals of other sessions.
        [
            ("asks 1.1 a", "new q1"), ("approve q1 a session 3", "1.1 approved"),
            ("asks 2.1 a", "new q2"), ("approve q2 a session 2", "2.1 approved"),
            ("asks 1.2 a", "q1 by bob"), ("asks 2.2 a", "q2 by bob"), ("asks 2.3 a", "new q3"),
            ("asks 1.3 a", "q1 by bob"), ("asks 1.4 a", "q3"),
        ],
        # One is valid for ten minutes, the other until the session ends.
        [
            ("asks 1.1 a", "new q1"), ("approve q1 a minutes 9", "1.1 approved"),
            (f"after {60 * MINUTES - 1}", ""), ("asks 1.2 a", "q1 by bob"),
            ("after 1", ""), ("asks 1.3 a", "new q2"),
        ],
        [
            ("asks 1.1 a", "new q1"), ("approve q1 a session 9", "1.1 approved"),
            ("after 1000000", ""), ("asks 1.2 a", "q1 by bob"),
            ("ends 1", ""), ("asks 1.1 a", "new q2"),
        ],
        # A suspended request gets the approval on its retry, until the question would have expired.
        [
            ("asks 1.1 a", "new q1"), ("leaves 1.1", ""), ("approve q1 a", ""),
            ("asks 1.2 a", "q1 by bob"), ("asks 1.3 a", "new q2"),
        ],
        [
            ("asks 1.1 a", "new q1"), ("leaves 1.1", ""), ("approve q1 a", ""),
            (f"after {EXPIRES_S}", ""), ("asks 1.2 a", "new q2"),
        ],
        [
            ("asks 1.1 a", "new q1"), ("leaves 1.1", ""), ("asks 1.2 a", "q1"),
            ("deny q1 a", "1.2 denied"), ("asks 1.3 a", "new q2"),
        ],
        # Or the denial, for a minute; other sessions may ask again.
        [
            ("asks 1.1 a", "new q1"), ("leaves 1.1", ""), ("deny q1 a", ""),
            ("asks 1.2 a", "denied by bob: no"), ("asks 2.1 a", "new q2"),
            ("asks 1.3 a", "denied by bob: no"),  # though an identical question is pending
        ],
        [
            ("asks 1.1 a", "new q1"), ("leaves 1.1", ""), ("deny q1 a", ""),
            ("asks 1.2 a", "denied by bob: no"), ("after 60", ""), ("asks 1.3 a", "new q2"),
        ],
        [
            ("asks 1.1 a", "new q1"), ("leaves 1.1", ""), ("deny q1 a", ""),
            ("ends 1", ""), ("asks 1.1 a", "new q2"),
        ],
        # Both sessions end: that of the held request, and that of the suspended one.
        [
            ("asks 1.1 a", "new q1"), ("asks 2.1 a", "q1"), ("leaves 2.1", ""),
            ("deny-and-stop q1 a", "1.1 denied!, 2.0 denied!"),
        ],
        # A question is removed with its last request.
        [
            ("asks 1.1 a", "new q1"), ("asks 2.1 a", "q1"), ("cancels 1.1", ""),
            ("cancels 1.7", ""), ("approve q1 a", "2.1 approved"),
        ],
        [("asks 1.1 a", "new q1"), ("cancels 1.1", ""), ("approve q1 a", "gone")],
        [
            ("asks 1.1 a", "new q1"), ("leaves 1.1", ""), ("asks 1.2 a", "q1"),
            ("cancels 1.2", ""), ("approve q1 a", ""), ("asks 1.3 a", "q1 by bob"),
        ],
        [("asks 1.1 a", "new q1"), ("ends 1", ""), ("approve q1 a", "gone")],
        [
            ("asks 1.1 a", "new q1"), ("asks 2.1 a", "q1"), ("ends 1", ""),
            ("approve q1 a session 2", "2.1 approved"), ("asks 1.1 a", "new q2"),
        ],
        # Expired, and void.
        [
            ("asks 1.1 a", "new q1"), ("after 100", ""), ("asks 1.2 a", "q1"),
            ("asks 1.3 b", "new q2"), ("after 200", "1.1 expired, 1.2 expired"),
            ("approve q1 a", "gone"), ("after 100", "1.3 expired"),
        ],
        [
            ("asks 1.1 a", "new q1"), ("asks 1.2 b", "new q2"), ("leaves 1.2", ""),
            ("approve q2 b", ""), ("asks 2.1 c", "new q3"),
            ("void", "1.1 void, 2.1 void"), ("approve q1 a", "gone"), ("asks 1.3 b", "new q4"),
        ],
    ],
)  # fmt: skip
def test_a_story(story: list[tuple[str, str]]) -> None:
    told = Story()
    assert [(event, told.tell(event)) for event, _ in story] == story


def test_a_decision_after_expiry_is_refused_before_expire_has_run() -> None:
    story = Story()
    story.tell("asks 1.1 a")
    story.now_s += EXPIRES_S
    assert story.decided(decide("q1", "a", "approve")) == "gone"


def test_due_time() -> None:
    story = Story()
    assert story.book.due_in_s(story.now_s) is None
    story.tell("asks 1.1 a")
    story.tell("after 100")
    story.tell("asks 1.2 b")
    assert story.book.due_in_s(story.now_s) == 200
    assert story.book.due_in_s(story.now_s + 999) == 0
    assert [entry.id for entry in story.book.entries()] == ["q1", "q2"]


def test_a_question_is_found_by_its_requests() -> None:
    story = Story()
    story.tell("asks 1.1 a")
    story.tell("leaves 1.1")
    entry = story.book.asked_by(1, 1)
    assert entry is story.book.find("q1")
    assert story.book.asked_by(1, 2) is None


def test_a_decision_on_one_request_covers_no_other() -> None:
    """As by elicitation: an identical request of another session stays pending."""
    story = Story()
    yes = DecideRequest(id="q1", digest="a", verdict=Verdict.APPROVE)
    story.tell("asks 1.1 a")
    story.tell("asks 2.5 a")
    (told,) = story.book.decide_one((2, 5), yes, "here", story.now_s)
    assert (told.session, told.hold, told.what) == (2, 5, "approved")
    story.tell("asks 3.7 a")
    story.tell("leaves 3.7")
    assert story.book.decide_one((3, 7), yes, "here", story.now_s) == []
    assert story.tell("asks 3.8 a") == "q1 by here"  # it was suspended meanwhile
    story.tell("asks 4.9 a")
    no = DecideRequest(id="q1", digest="a", verdict=Verdict.DENY)
    (told,) = story.book.decide_one((4, 9), no, "here", story.now_s)
    assert (told.session, told.what) == (4, "denied")
    story.tell("asks 5.1 a")
    story.tell("leaves 5.1")
    assert story.book.decide_one((5, 1), no, "here", story.now_s) == []
    assert story.tell("asks 5.2 a") == "denied by here"
    assert story.tell("approve q1 a") == "1.1 approved"


def test_identical_requests_of_another_account_or_server_are_another_question() -> None:
    book = ApprovalQueue(iter("abc").__next__)
    for number, each in enumerate([about("x", 1000), about("x", 1001)]):
        answer = book.ask(number, 1, each, 0.0)
        assert isinstance(answer, QueuedQuestion)
        assert answer.is_new


def test_reasons_are_in_the_notices() -> None:
    story = Story()
    story.tell("asks 1.1 a")
    answer = DecideRequest(
        id="q1", digest="a", verdict=Verdict.DENY, reason="zu spät".encode()[:-2]
    )
    (told,) = story.book.decide(answer, "bob (web)", story.now_s)
    assert (told.by, told.reason) == ("bob (web)", "zu sp\ufffd")
    story.tell("asks 1.2 a")
    story.tell("leaves 1.2")
    answer = DecideRequest(id="q2", digest="a", verdict=Verdict.DENY)
    assert story.book.decide(answer, "bob", story.now_s) == []
    assert story.tell("asks 1.3 a") == "denied by bob"


def test_pending_questions_are_limited_by_agent_and_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MAX_OF_AGENT", 2)
    monkeypatch.setattr(queue, "MAX_WAITING", 3)
    book = ApprovalQueue(iter("abcdefgh").__next__)
    asked = [
        book.ask(1, number, about(f"{number}", uid), 0.0)
        for number, uid in enumerate([1000, 1000, 1000, 1001, 1002])
    ]
    assert [isinstance(one, QueuedQuestion) for one in asked] == [True, True, False, True, False]
    assert asked[2] == QuestionRejected("2 requests of this account are already pending", "paused")
    assert asked[4] == QuestionRejected("3 requests are already pending", "paused")
    assert isinstance(
        book.ask(1, 9, about("0"), 0.0), QueuedQuestion
    )  # an identical request may always join
    assert MAX_OF_AGENT < MAX_WAITING


def test_repeated_retries_do_not_grow_an_entry() -> None:
    story = Story()
    story.tell("asks 2.1 a")
    story.tell("leaves 2.1")
    for number in range(1, 10 * MAX_AWAY):
        story.tell(f"asks 1.{number} a")
        story.tell(f"leaves 1.{number}")
    (entry,) = story.book.entries()
    assert len(entry.asked) <= MAX_AWAY + 2
    assert entry.times == 10 * MAX_AWAY
    assert story.book.asked_by(1, 10 * MAX_AWAY - 1) is entry
    story.tell("approve q1 a session 2")
    assert [story.tell("asks 1.9999 a"), story.tell("asks 2.2 a")] == ["q1 by bob"] * 2


def test_after_a_rule_was_saved_the_others_of_its_tool_are_judged_again() -> None:
    story = Story()
    for number, digest in enumerate("abbc", 1):
        story.tell(f"asks 1.{number} {digest}")
    story.tell("leaves 1.4")
    assert story.tell("approve q1 a rule 1") == "1.1 approved"
    assert story.tell("again") == "1.2 void, 1.3 void"
    assert [entry.id for entry in story.book.entries()] == ["q3"]  # its request will retry
    assert story.tell("asks 1.5 b") == "new q2"  # the same question, in the list again
    assert story.tell("asks 1.6 b") == "q2"
    assert story.tell("asks 1.7 c") == "q3"
    assert story.tell("approve q2 b") == "1.5 approved, 1.6 denied"
    assert story.tell("asks 1.8 b") == "new q4"


def test_a_question_that_is_asked_again_is_not_counted_but_expires() -> None:
    story = Story()
    for number in range(1, MAX_NEW + 1):
        story.tell(f"asks 1.{number} d{number}")
        if number < MAX_NEW:
            story.tell(f"cancels 1.{number}")
    story.tell("again")
    assert story.tell(f"asks 1.99 d{MAX_NEW}") == f"new q{MAX_NEW}"
    story.tell("again")
    story.now_s += EXPIRES_S
    assert story.tell(f"asks 1.100 d{MAX_NEW}") == f"new q{MAX_NEW + 1}"
    story.tell("again")
    story.tell("void")
    assert story.tell(f"asks 1.101 d{MAX_NEW}") == f"new q{MAX_NEW + 2}"


def test_an_approval_as_a_rule_leaves_equal_requests_to_the_rule() -> None:
    story = Story()
    story.tell("asks 1.1 a")
    story.tell("asks 2.1 a")
    assert story.tell("approve q1 a rule 1") == "1.1 approved, 2.1 void"
    story.tell("asks 1.2 b")
    story.tell("leaves 1.2")
    story.tell("approve q2 b rule 1")  # for the retry of a suspended request, once
    assert [story.tell("asks 1.3 b"), story.tell("asks 1.4 b")] == ["q2 by bob", "new q3"]


def test_many_denials_or_questions_pause_an_agent() -> None:
    story = Story()
    for number in range(1, MAX_DENIALS + 1):
        story.tell(f"asks 1.{number} d{number}")
        story.tell(f"deny q{number} d{number}")
    assert story.tell("asks 1.99 x") == "paused: 5 requests were denied; retry in 601 s"
    story = Story()
    for number in range(1, MAX_NEW + 1):
        story.tell(f"asks 1.{number} d{number}")
        story.tell(f"cancels 1.{number}")
    assert story.tell("asks 1.99 x") == f"paused: {MAX_NEW} questions in 60 s"


@dataclass
class Model:
    """Reference model of the permitted runs, which checks every run."""

    allowed: dict[str, int] = field(default_factory=dict)  # remaining runs, by question
    until_s: dict[str, float] = field(default_factory=dict)
    digest: dict[str, str] = field(default_factory=dict)
    asked: dict[str, set[int]] = field(default_factory=dict)  # sessions
    held: set[tuple[int, int]] = field(default_factory=set)

    def runs(self, id_: str, session: int, digest: str, now_s: float) -> None:
        assert self.digest[id_] == digest
        assert session in self.asked[id_]
        assert now_s < self.until_s[id_]
        self.allowed[id_] -= 1
        assert self.allowed[id_] >= 0

    def receive(self, told: list[ApprovalNotice]) -> None:
        for one in told:
            self.held.remove((one.session, one.hold))  # each held request gets one notice


sessions = st.integers(1, 3)
digests = st.sampled_from("abc")
scopes = st.tuples(st.sampled_from(Scope), st.integers(1, 3))
events = st.one_of(
    st.tuples(st.just("asks"), sessions, digests),
    st.tuples(st.just("asks"), sessions, digests),
    st.tuples(st.just("leaves"), st.integers(0, 99)),
    st.tuples(st.just("cancels"), st.integers(0, 99)),
    st.tuples(st.just("answers"), st.integers(0, 99), st.sampled_from(Verdict), digests, scopes),
    st.tuples(st.just("answers"), st.integers(0, 99), st.just(Verdict.APPROVE), digests, scopes),
    st.tuples(st.just("ends"), sessions),
    st.tuples(st.just("after"), st.sampled_from([1.0, 59.0, 299.0, 601.0])),
    st.just(("void",)),
)


class Trial:
    """Random sequence of events, checked against the model."""

    def __init__(self) -> None:
        self.story, self.model = Story(), Model()
        self.holds = count(1)
        self.ids: list[str] = []

    def take(self, event: tuple[object, ...]) -> None:
        book, model = self.story.book, self.model
        match event:
            case ("asks", int(session), str(digest)):
                self.ask(session, digest)
            case (("leaves" | "cancels") as how, int(which)) if model.held:
                one = sorted(model.held)[which % len(model.held)]
                model.held.remove(one)
                book.withdraw(*one, will_resume=how == "leaves")
            case ("answers", int(which), Verdict() as verdict, str(digest), (scope, times)):
                self.answer(which, verdict, digest, (scope, times))
            case ("ends", int(session)):
                book.is_over(session)
                model.held = {one for one in model.held if one[0] != session}
                for asked in model.asked.values():
                    asked.discard(session)
            case ("after", float(seconds)):
                self.story.now_s += seconds
                model.receive(book.expire(self.story.now_s))
            case ("void",):
                model.receive(book.void())
                assert not model.held
                model.allowed = dict.fromkeys(model.allowed, 0)
            case _:
                pass  # no request is held
        assert {one for entry in book.entries() for one in entry.held} == model.held

    def ask(self, session: int, digest: str) -> None:
        model, hold = self.model, next(self.holds)
        match self.story.book.ask(session, hold, about(digest), self.story.now_s):
            case AlreadyApproved(id_):
                model.runs(id_, session, digest, self.story.now_s)
            case QueuedQuestion(id_, is_new):
                assert is_new == (id_ not in self.ids)
                self.ids += [id_] * is_new
                model.held.add((session, hold))
                model.digest[id_] = digest
                model.asked.setdefault(id_, set()).add(session)
            case QuestionRejected():
                pass

    def answer(
        self, which: int, verdict: Verdict, digest: str, scope: tuple[object, object]
    ) -> None:
        if not self.ids:
            return
        id_, now_s = self.ids[which % len(self.ids)], self.story.now_s
        entry = self.story.book.find(id_)
        answer = decide(id_, digest, verdict, str(scope[0]), int(str(scope[1])))
        if fault := self.story.book.fault(answer, now_s):
            assert fault.code == ("changed" if entry else "gone")
            return
        assert entry
        assert (
            self.model.digest[id_] == digest
        )  # the document that was shown is the one that was asked about
        if verdict is Verdict.APPROVE:
            is_single = answer.scope in {Scope.ONCE, Scope.RULE}
            self.model.allowed[id_] = 1 if is_single else answer.times
            self.model.until_s[id_] = {
                Scope.ONCE: entry.expires_at_s,
                Scope.RULE: entry.expires_at_s,
                Scope.MINUTES: now_s + 60 * MINUTES,
                Scope.SESSION: float("inf"),
            }[answer.scope]
        told = [one for one in self.story.book.decide(answer, "bob", now_s) if one.hold]
        self.model.receive(told)
        for one in told:
            if one.what == "approved":
                self.model.runs(one.id, one.session, digest, now_s)


@settings(max_examples=300)
@given(st.lists(events, max_size=40))
def test_nothing_runs_that_was_not_approved_nor_too_often(
    sequence: list[tuple[object, ...]],
) -> None:
    trial = Trial()
    for event in sequence:
        trial.take(event)


def test_the_random_sequences_include_runs() -> None:
    """The property would hold trivially for sequences in which nothing runs."""
    ran: list[int] = []

    @settings(max_examples=200, derandomize=True)
    @given(st.lists(events, min_size=20, max_size=40))
    def look(sequence: list[tuple[object, ...]]) -> None:
        trial = Trial()
        for event in sequence:
            trial.take(event)
        ran.append(sum(left == 0 for left in trial.model.allowed.values()))

    look()
    assert sum(map(bool, ran)) > len(ran) / 10
