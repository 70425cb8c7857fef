"""Approval by the monitor, from the request of a session to the decision of an approver."""

import os
import socket
import time

import pytest

from mcpwrap.as_gate.approvals import connections
from mcpwrap.as_gate.ipc.approval_packets import ApprovalQuery, PageRequest, Withdrawn
from mcpwrap.as_gate.ipc.packets import ChannelError
from mcpwrap.as_gate.state.children import Child
from mcpwrap.core.approval import document as approval_document
from mcpwrap.core.approval.client_forms import NO_CLIENT, FormAnswer
from mcpwrap.core.approval.document import MAX_DOCUMENT_BYTES, Question
from mcpwrap.core.gate.ports import ApprovalOutcome, ApprovalUnavailable, Approved, AwaitingApproval
from mcpwrap.core.policy.decision import AskingRules
from mcpwrap.core.wire import approval_socket
from mcpwrap.core.wire.approval_socket import (
    MAX_BYTES,
    Channel,
    DecideRequest,
    DocumentReply,
    DoneReply,
    EndOfList,
    ListRequest,
    LoginRequest,
    Paused,
    Pending,
    Proof,
    RefusedReply,
    ShowRequest,
    Verdict,
    WatchRequest,
    encode_question,
)
from mcpwrap.linux.unix_socket import memfd
from tests.unit.as_gate.approving_world import GROUP, HOOK_UID, WEB_UID, Session, Somebody, World

APPROVE, DENY = Verdict.APPROVE, Verdict.DENY


def waiting(session: Session, hold: int = 1, **arguments: int) -> AwaitingApproval:
    answer = session.ask(hold, **arguments)
    assert isinstance(answer, AwaitingApproval)
    return answer


def decide(waits: AwaitingApproval, verdict: Verdict = APPROVE, /, **more: object) -> DecideRequest:
    return DecideRequest(id=waits.id, digest=waits.shown, verdict=verdict, **more)  # type: ignore[arg-type]


def texts(somebody: Somebody) -> list[bytes]:
    found = [memfd.read_all(fd) for fd in somebody.fds]
    for fd in somebody.fds:
        os.close(fd)
    somebody.fds.clear()
    return found


def test_the_shown_document_is_approved_and_the_session_notified(world: World) -> None:
    session, bob = world.session(), world.approver()
    waits = waiting(session, table=7)
    assert session.hears() == [None]  # announces a new held request
    (pending,) = bob.listed()
    assert pending == Pending(
        id=waits.id, digest=waits.shown, size=pending.size, agent_uid=1000, server="sqlite",
        session="12-1", method="tools/call", target="drop", rule="writes", message="Look.",
        asked_at=pending.asked_at, expires_at=pending.asked_at + 300, times=1, waiting=1, may="yes",
        may_save="yes", asking=("writes",),
    )  # fmt: skip
    assert bob.says(ShowRequest(waits.id)) == [DocumentReply(id=waits.id, digest=waits.shown)]
    (document,) = texts(bob)
    assert approval_document.digest(document) == waits.shown
    assert len(document) == pending.size
    assert approval_document.read(document) == Question(
        agent_uid=1000, server="sqlite", method="tools/call", target="drop", definition="",
        params={"name": "drop", "arguments": {"table": 7}}, policy="12ab",
    )  # fmt: skip
    assert bob.says(decide(waits)) == [DoneReply(text=f"{waits.id} is approved")]
    (told,) = session.hears()
    assert told == ApprovalOutcome(hold=1, what="approved", by="uid 1001 (command)")
    (event,) = world.audit.events
    assert (event.outcome, event.uid, event.pid, event.shown) == ("approved", 1001, 7, waits.shown)
    assert (event.agent_uid, event.server, event.target) == (1000, "sqlite", "drop")
    # A replayed decision is refused.
    assert bob.asks(decide(waits)) == f"gone: no pending request has the id {waits.id}"
    assert session.hears() == []


def test_the_last_approved_call_of_the_same_agent_is_shown(world: World) -> None:
    """The arguments of another account's calls are not sent."""
    session, other, bob = world.session(1), world.session(2, uid=1003), world.approver()
    first = waiting(session, secret=1)
    bob.says(ShowRequest(first.id))
    assert len(texts(bob)) == 1
    bob.says(decide(first))
    again, others = waiting(session, 2, secret=2), waiting(other, secret=3)
    bob.says(ShowRequest(again.id))
    now, before = texts(bob)
    assert b'"secret":2' in now
    assert b'"secret":1' in before
    carol = world.somebody(1003)
    assert [one.id for one in carol.listed()] == [others.id]
    carol.says(ShowRequest(others.id))
    assert len(texts(carol)) == 1
    assert carol.asks(ShowRequest(again.id)).startswith("gone: ")


def test_a_call_that_the_agents_own_window_approved_is_not_compared_with(world: World) -> None:
    session, bob = world.session(), world.approver()
    bob.says(decide(waiting(session, secret=1)))
    waiting(session, 2, secret=2)
    session.asking.take_form_answer(2, NO_CLIENT, FormAnswer.APPROVED)
    world.serve()
    bob.says(ShowRequest(waiting(session, 3, secret=3).id))
    now, before = texts(bob)
    assert b'"secret":3' in now
    assert b'"secret":1' in before


@pytest.mark.parametrize(
    ("uid", "gids", "seen", "answer"),
    [
        (1001, (GROUP,), "yes", "Done"),
        (0, (), "yes", "Done"),
        (1000, (), "proof", "proof: the agent runs under this account"),
        (1000, (GROUP,), "proof", "proof: the agent runs under this account"),
        (1002, (), None, "gone: "),
        (HOOK_UID, (), "no", "not-you: "),
    ],
)
def test_who_may_answer(
    world: World, uid: int, gids: tuple[int, ...], seen: str | None, answer: str
) -> None:
    session, person = world.session(), world.somebody(uid, *gids)
    waits = waiting(session)
    session.hears()
    assert [one.may for one in person.listed()] == ([seen] if seen else [])
    assert person.asks(decide(waits)).startswith(answer)
    assert len(session.hears()) == (answer == "Done")
    (event,) = world.audit.events
    assert event.outcome == ("approved" if answer == "Done" else "refused")


def test_root_may_allow_the_agents_own_account_without_a_proof(world: World) -> None:
    world.approving.deciding.same_uid = True
    waits = waiting(world.session())
    assert world.somebody(1000).asks(decide(waits)).startswith("Done")


@pytest.mark.parametrize("channel", [Channel.CLIENT, Channel.WEB])
def test_a_decision_cannot_claim_another_channel(world: World, channel: Channel) -> None:
    waits = waiting(world.session())
    answer = world.approver().asks(decide(waits, channel=channel))
    assert answer == f"wrong: the decision did not come by the channel {channel.value!r}"


def test_a_proof_is_for_the_connecting_account_only(world: World) -> None:
    session = world.session()
    waits = waiting(session)
    session.hears()
    assert world.approver().asks(decide(waits, user="alice")).startswith("Done")
    (told,) = session.hears()
    assert told
    assert told.by == "uid 1001 (command)"
    assert world.audit.events[0].user == ""


def test_a_denial_has_its_reason_and_may_stop_the_session(world: World) -> None:
    session, away, bob = world.session(1), world.session(2), world.approver()
    waits, others = waiting(session), waiting(away)
    assert waits.id == others.id
    away.asking.withdraw(1, will_resume=True)
    world.serve()
    reason = "no\x1b ☃".encode()
    bob.says(decide(waits, Verdict.DENY_AND_STOP, reason=reason))
    _, told = session.hears()
    assert told == ApprovalOutcome(
        hold=1, what="denied", by="uid 1001 (command)", reason="no\x1b ☃", stops=True
    )
    _, told = away.hears()
    assert told
    assert told.stops
    answer = away.ask(2)
    assert answer == ApprovalUnavailable("denied by uid 1001 (command): no\x1b ☃", "denied")


def test_the_longest_reason_fits(world: World) -> None:
    session, bob = world.session(), world.approver()
    waits = waiting(session)
    bob.says(decide(waits, DENY, reason=b"\x01" * 9000))
    told = session.hears()[1]
    assert told
    assert told.reason == "\x01" * 1024
    waits = waiting(session, 2)
    session.asking.withdraw(2, will_resume=True)
    world.serve()
    bob.says(decide(waits, DENY, reason=b"\x01" * 9000))
    answer = session.ask(3)
    assert isinstance(answer, ApprovalUnavailable)
    assert answer.why.endswith("\x01" * 1024)


def test_without_an_audit_record_there_is_no_approval_but_a_denial(world: World) -> None:
    session, bob = world.session(), world.approver()
    waits = waiting(session)
    world.audit.is_broken = True
    assert bob.asks(decide(waits)).startswith("busy: the audit cannot be written")
    assert session.hears() == [None]
    assert bob.asks(decide(waits, DENY)).startswith("Done")
    assert [told.what for told in session.hears() if told] == ["denied"]


def test_a_decision_on_another_request_or_document_is_refused(world: World) -> None:
    session, bob = world.session(), world.approver()
    one, other = waiting(session, 1, a=1), waiting(session, 2, a=2)
    wrong = DecideRequest(id=one.id, digest=other.shown, verdict=APPROVE)
    assert bob.asks(wrong) == "changed: the request that was shown is not the pending one"
    assert bob.asks(DecideRequest(id="x\x1b", digest="", verdict=APPROVE)) == (
        r"gone: no pending request has the id x\x1b"
    )
    assert [event.outcome for event in world.audit.events] == ["refused", "refused"]


def test_malformed_packets_are_answered(world: World) -> None:
    """The connection stays open: unread descriptors would count against the gate for ever."""
    bob = world.approver()
    assert bob.says(b"nonsense") == [
        RefusedReply(code="wrong", why="malformed packet: a packet of an unknown kind")
    ]
    assert bob.listed() == []


def test_a_document_is_sent_after_the_last_one_was_read(world: World) -> None:
    waits, bob = waiting(world.session()), world.approver()
    bob.socket.send(encode_question(ShowRequest(waits.id)))
    bob.socket.send(encode_question(ShowRequest(waits.id)))
    world.serve()
    assert approval_socket.decode(bob.socket.recv(MAX_BYTES)) == DocumentReply(
        id=waits.id, digest=waits.shown
    )
    assert approval_socket.decode(bob.socket.recv(MAX_BYTES)) == RefusedReply(
        code="busy", why="one document at a time"
    )
    assert isinstance(bob.says(ShowRequest(waits.id))[0], DocumentReply)


def test_refused_attempts_are_recorded_up_to_a_rate(world: World) -> None:
    waits = waiting(world.session())
    alice = world.somebody(1000)
    for _ in range(30):
        alice.says(decide(waits))
    assert 10 <= len(world.audit.events) < 30


def test_an_approval_is_used_up_by_the_retry(world: World) -> None:
    session, bob = world.session(), world.approver()
    waits = waiting(session)
    session.asking.withdraw(1, will_resume=True)
    world.serve()
    assert [one.waiting for one in bob.listed()] == [0]
    bob.says(decide(waits))
    assert session.hears() == [None]
    assert session.ask(2) == Approved(waits.id, waits.shown, "uid 1001 (command)")
    assert isinstance(session.ask(3), AwaitingApproval)


def test_a_cancelled_or_ended_question_is_removed_with_its_document(world: World) -> None:
    session, other, bob = world.session(1), world.session(2), world.approver()
    documents = world.approving.deciding.documents
    waiting(session)
    waiting(other, a=1)
    assert len(documents._fd_by_id) == 2
    session.asking.withdraw(1, will_resume=False)
    world.serve()
    assert len(bob.listed()) == 1
    documents.pages.new(other.child.pid)
    world.approving.is_over(other.child)
    assert bob.listed() == []
    assert not documents._fd_by_id
    assert not documents.pages._page_by_session


def test_elicitation(world: World) -> None:
    one, other = world.session(1), world.session(2)
    waits = waiting(one)
    assert waiting(other).id == waits.id
    other.asking.take_form_answer(1, NO_CLIENT, FormAnswer.APPROVED)
    world.serve()
    by = "uid 1000 in the agent's own window"
    assert other.hears()[1:] == [ApprovalOutcome(hold=1, what="approved", by=by)]
    assert [told.what for told in one.hears() if told] == []  # a question of another session
    assert world.audit.events[0].channel == "client"
    other.asking.take_form_answer(1, NO_CLIENT, FormAnswer.APPROVED)  # decided meanwhile
    waiting(other, 2)
    other.asking.take_form_answer(2, NO_CLIENT, FormAnswer.DENIED)
    world.serve()
    assert [told.what for told in other.hears() if told] == ["denied"]
    assert [one.id for one in world.approver().listed()] == [waits.id]


@pytest.mark.parametrize("given", [FormAnswer.APPROVED, FormAnswer.DENIED])
def test_without_a_rule_a_form_decides_nothing_and_the_question_stays(
    world: World, given: FormAnswer
) -> None:
    """A reload may have taken `ask_in_client` away while the form was open."""
    session = world.session(server="plain")
    waits = waiting(session)
    session.asking.take_form_answer(1, NO_CLIENT, given)
    world.serve()
    assert [told for told in session.hears() if told] == []
    assert [one.id for one in world.approver().listed()] == [waits.id]


def test_an_answer_of_a_hub_to_a_form_is_an_error(world: World) -> None:
    session = world.session(server="sqlite", via="12-9")
    waiting(session)
    session.asking.take_form_answer(1, NO_CLIENT, FormAnswer.APPROVED)
    with pytest.raises(ChannelError, match="a hub has no window"):
        world.serve()


def test_expiry_and_another_policy(world: World) -> None:
    session, bob = world.session(), world.approver()
    approving = world.approving
    now_s = time.monotonic()
    approving.catch_up(now_s)
    assert approving.due_in_s(now_s) is None
    waiting(session)
    waiting(session, 2, a=1)
    approving.catch_up(now_s + 1)
    due_s = approving.due_in_s(now_s + 1)
    assert due_s is not None
    assert 290 < due_s < 300
    session.asking.withdraw(2, will_resume=True)
    world.serve()
    approving.catch_up(now_s + 301)
    assert [told.what for told in session.hears() if told] == ["expired"]
    assert bob.listed() == []
    waiting(session, 3)
    approving.void()
    assert [told.what for told in session.hears() if told] == ["void"]
    assert bob.listed() == []


def test_changes_are_sent_to_watching_connections_at_a_limited_rate(world: World) -> None:
    session, bob, carol = world.session(), world.approver(), world.somebody(1002)
    assert bob.says(WatchRequest()) == carol.says(WatchRequest()) == [EndOfList()]
    now_s = time.monotonic()
    waits = waiting(session)
    assert bob.hears() == []
    world.approving.catch_up(now_s)
    pending, end = bob.hears()
    assert isinstance(pending, Pending)
    assert end == EndOfList()
    assert carol.hears() == [EndOfList()]  # announces a change without its content
    session.asking.withdraw(1, will_resume=True)
    world.serve()
    world.approving.catch_up(now_s + 0.05)
    assert bob.hears() == []
    assert world.approving.due_in_s(now_s + 0.05) == pytest.approx(0.05)
    world.approving.catch_up(now_s + 0.1)
    assert len(bob.hears()) == 2
    # The removal of a question without held requests is a change, too.
    world.approving.catch_up(now_s + 400)
    assert bob.hears() == [EndOfList()]
    assert bob.asks(decide(waits)).startswith("gone: ")


def test_paused_agents_are_listed(world: World) -> None:
    session, bob = world.session(), world.approver()
    for hold in range(1, 6):
        bob.says(decide(waiting(session, hold), DENY))
    answer = session.ask(6)
    assert isinstance(answer, ApprovalUnavailable)
    assert answer.why.startswith("paused: 5 requests were denied")
    paused, _ = bob.says(ListRequest())
    assert isinstance(paused, Paused)
    assert (paused.agent_uid, paused.server) == (1000, "sqlite")
    assert paused.until == pytest.approx(time.time() + 600, abs=5)
    assert world.somebody(1002).says(ListRequest()) == [EndOfList()]


def test_a_request_that_is_too_long_to_be_read_is_refused(world: World) -> None:
    answer = world.session().ask(1, sql="x" * MAX_DOCUMENT_BYTES)
    assert answer == ApprovalUnavailable(f"over {MAX_DOCUMENT_BYTES} bytes, too long to be read")


def test_a_lack_of_descriptors_ends_no_session(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(memfd, "unsealed", fail)
    assert world.session().ask(1) == ApprovalUnavailable("the gate has no memory for its document")


def test_packets_that_no_session_sends(world: World) -> None:
    session = world.session()
    ask = ApprovalQuery(1, 300.0, "tools/call", "drop", "writes", "")
    with pytest.raises(ChannelError, match="no document"):
        world.approving.handle(session.child, ask, 0.0)
    fd = world.approving.deciding.documents.pages.new(session.child.pid)
    os.ftruncate(fd, MAX_DOCUMENT_BYTES + 1)
    with pytest.raises(ChannelError, match="has 1048577 bytes"):
        world.approving.handle(session.child, ask, 0.0)
    session.child.entry = None
    with pytest.raises(ChannelError, match="named its server"):
        world.approving.handle(session.child, PageRequest(), 0.0)


def test_withdrawing_an_unknown_request_changes_nothing(world: World) -> None:
    session, bob = world.session(), world.approver()
    waiting(session)
    for hold in (0, 2, 4_000_000_000):
        world.approving.handle(session.child, Withdrawn(hold, will_resume=False), 0.0)
    assert len(bob.listed()) == 1


def test_a_session_that_does_not_read_is_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, bob = world.session(), world.approver()
    waits = waiting(session)
    ended: list[Child] = []
    monkeypatch.setattr(world.family, "kill", ended.append)
    session.told.close()
    assert bob.asks(decide(waits)).startswith("Done")
    assert ended == [session.child]


def test_connections_are_limited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_OF_UID", 2)
    monkeypatch.setattr(connections, "MAX_OTHERS", 3)
    monkeypatch.setattr(connections, "MAX_PEOPLE", 5)
    refused = [RefusedReply(code="busy", why="too many connections")]
    alice = [world.somebody(1000) for _ in range(3)]
    assert [one.hears() for one in alice] == [[], [], refused]
    assert alice[2].has_left()
    assert world.somebody(1002).hears() == []
    assert world.somebody(1003).hears() == refused  # three accounts that are not approvers
    assert [world.approver().hears() for _ in range(2)] == [[], []]
    assert world.somebody(0).hears() == refused
    alice[0].socket.close()
    world.serve()
    assert world.somebody(WEB_UID).hears() == []


def test_a_slow_reader_gets_no_more_packets(world: World) -> None:
    bob, waits = world.approver(), waiting(world.session())
    bob.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    (person,) = world.people._person_by_fd.values()
    for _ in range(2000):
        world.people.send(person, EndOfList())
    assert person.is_stuck
    assert person.socket.fileno() >= 0  # it counts as connected until it closes
    assert world.approver().asks(decide(waits)).startswith("Done")
    bob.socket.close()
    world.serve()
    assert person.socket.fileno() == -1
    world.people.send(person, EndOfList())
    assert world.people.receive(person) == b""


@pytest.mark.parametrize(
    ("message", "names"),
    [("é" * 1000, ()), ("é" * 300, tuple(f"{number:015}" for number in range(99)))],
)
def test_two_full_lists_fit_into_the_buffer(
    world: World, message: str, names: tuple[str, ...]
) -> None:
    for pid in range(1, 5):
        session = world.session(pid, uid=1000 + pid, server="a-server-with-a-long-name")
        session.message = message
        session.asking_rules = AskingRules(rules=names[:4], deciding=names, exact=names)
        for number in range(16):
            waiting(session, number + 1, n=number)
    bob = world.somebody(0)
    bob.socket.send(b"list")
    bob.socket.send(b"list")
    world.serve()
    assert len(bob.hears()) == 2 * 65


@pytest.mark.usefixtures("passwords")
def test_the_page_answers_for_the_account_of_a_password(world: World) -> None:
    session, page = world.session(), world.somebody(WEB_UID)
    waits = waiting(session)
    session.hears()
    assert [one.may for one in page.listed()] == ["proof"]
    web = {"channel": Channel.WEB, "proof": Proof.PASSWORD, "user": "root"}
    assert page.asks(decide(waits, channel=Channel.WEB)).startswith("proof: ")
    assert page.asks(decide(waits, **web, password=b"wrong")) == "proof: wrong password"
    assert page.asks(decide(waits, **{**web, "user": "nobody"}, password=b"right")) == (
        "proof: wrong password"
    )
    assert session.hears() == []
    assert page.asks(decide(waits, **web, password=b"right")).startswith("Done")
    (told,) = session.hears()
    assert told
    assert (told.what, told.by) == ("approved", "root (web, password)")
    assert world.audit.events[-1].user == "root"


@pytest.mark.usefixtures("passwords")
def test_a_password_is_checked_for_the_page_and_for_the_own_account(world: World) -> None:
    page, root, alice = world.somebody(WEB_UID), world.somebody(0), world.somebody(1000)
    assert page.asks(LoginRequest("root", b"right")).startswith(
        "DoneReply(text='logged in', user='root'"
    )
    assert page.asks(LoginRequest("root", b"wrong")) == "proof: wrong password"
    assert root.asks(LoginRequest("root", b"right")).startswith("Done")
    assert (
        alice.asks(LoginRequest("root", b"right"))
        == "not-you: the user is not the account that connects"
    )
    waits = waiting(world.session())
    proof = {"proof": Proof.PASSWORD, "user": "root", "password": b"right"}
    assert alice.asks(decide(waits, **proof)) == "not-you: this account may not answer the request"


@pytest.mark.usefixtures("passwords")
def test_password_guesses_are_limited(world: World) -> None:
    page = world.somebody(WEB_UID)
    assert {page.asks(LoginRequest("root", b"wrong")) for _ in range(5)} == {
        "proof: wrong password"
    }
    assert page.asks(LoginRequest("root", b"right")).startswith("busy: 5 wrong proofs: retry in ")
    # The page may still try other names, and root its own.
    assert page.asks(LoginRequest("nobody", b"x")) == "proof: wrong password"
    assert world.somebody(0).asks(LoginRequest("root", b"right")).startswith("Done")


@pytest.mark.usefixtures("passwords")
def test_one_request_at_a_time_while_a_proof_is_checked(world: World) -> None:
    page = world.somebody(WEB_UID)
    page.socket.send(b"login\nroot\nright")
    page.socket.send(b"list")
    world.serve()
    first, second = page.hears()
    assert first == RefusedReply(
        code="busy", why="a proof is being checked; send one request at a time"
    )
    assert second == DoneReply(text="logged in", user="root")


@pytest.mark.usefixtures("passwords")
def test_a_question_that_is_removed_during_the_check_is_not_approved(world: World) -> None:
    session, page = world.session(), world.somebody(WEB_UID)
    waits = waiting(session)
    proof = {"channel": Channel.WEB, "proof": Proof.PASSWORD, "user": "root", "password": b"right"}
    (person,) = world.people._person_by_fd.values()
    world.approving.deciding.decide(person, decide(waits, **proof))
    world.approving.void()
    world.serve()
    assert [type(one) for one in page.hears()] == [RefusedReply]
    assert [told.what for told in session.hears() if told] == ["void"]
