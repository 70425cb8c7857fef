"""Approval rules in the monitor: saved by an approver, used by sessions, revoked, expired."""

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from mcpwrap.as_gate.approvals import decisions
from mcpwrap.as_gate.approvals.authentication import AuthResult
from mcpwrap.as_gate.approvals.saved_rules import SavedRules
from mcpwrap.core.approval.approval_rule import (
    ApprovalRule,
    RuleRequest,
    TickedArgument,
    passed_by,
)
from mcpwrap.core.approval.client_forms import NO_CLIENT, FormAnswer
from mcpwrap.core.gate.ports import Approved, AwaitingApproval
from mcpwrap.core.policy.decision import AskingRules
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.approval_socket import (
    Channel,
    DecideRequest,
    Proof,
    RevokeRequest,
    SavedRulesReply,
    SavedRulesRequest,
    Scope,
    Verdict,
)
from mcpwrap.core.wire.server_files import AccessList
from mcpwrap.linux.unix_socket import memfd
from mcpwrap.session.approvals import rule_files
from tests.unit.as_gate.approving_world import (
    ADMISSIONS,
    HOOK_UID,
    HUB,
    WEB_UID,
    Session,
    Somebody,
    World,
)

ID = (TickedArgument("id"),)


class Clock:
    """Seconds since 1970, which a test sets forward."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_s


@pytest.fixture
def clock(world: World) -> Iterator[Clock]:
    made = Clock()
    world.approving._rules._now = made
    yield made
    rules_of(world.approver())  # closes what was received


def request(**fields: object) -> str:
    wanted = RuleRequest(**{"ticked": ID, "times": 0, "for_s": 60, **fields})  # type: ignore[arg-type]
    return msgspec.json.encode(wanted).decode()


def held(session: Session, hold: int = 1, /, **arguments: Json) -> AwaitingApproval:
    answer = session.ask(hold, **arguments)
    assert isinstance(answer, AwaitingApproval)
    return answer


def always(waits: AwaitingApproval, rule: str = "", **more: object) -> DecideRequest:
    fields = {"scope": Scope.RULE, "rule": rule or request(), **more}
    return DecideRequest(id=waits.id, digest=waits.shown, verdict=Verdict.APPROVE, **fields)  # type: ignore[arg-type]


def rules_of(somebody: Somebody) -> list[ApprovalRule]:
    (reply,) = somebody.says(SavedRulesRequest())
    assert isinstance(reply, SavedRulesReply)
    fd = somebody.fds.pop()
    found = msgspec.json.decode(memfd.read_all(fd), type=list[ApprovalRule])
    os.close(fd)
    return found


def saved(world: World, session: Session, rule: str = "", /, **arguments: Json) -> ApprovalRule:
    """Have bob save the approval of a call as a rule."""
    bob = world.approver()
    before = {one.id for one in rules_of(bob)}
    assert bob.asks(always(held(session, 1, **arguments), rule)).startswith("Done")
    (new,) = [one for one in rules_of(bob) if one.id not in before]
    session.hears()
    return new


def test_calls_of_its_kind_pass_and_others_are_asked(world: World) -> None:
    session = world.session()
    rule = saved(world, session, id=1, list="groceries")
    assert rule.by == "uid 1001 (command)"
    assert (rule.answers, rule.agent_uid, rule.server) == (("writes",), 1000, "sqlite")
    for number in range(2, 30):
        answer = session.ask(number, id=number, list="groceries")
        assert isinstance(answer, Approved)
        assert (answer.id, answer.by) == (rule.id, f"rule {rule.id} of uid 1001 (command)")
    assert session.hears() == []
    held(session, 40, id=1, list="work")  # differs where nothing was ticked
    held(session, 41, id=1, list="groceries", force=True)
    assert isinstance(world.session(2).ask(1, id=5, list="groceries"), Approved)  # any session
    held(world.session(3, uid=1003), 1, id=1, list="groceries")  # another agent
    held(world.session(4, server="plain"), 1, id=1, list="groceries")  # another server
    session.asking_rules = AskingRules(rules=("writes", "default.delete"))
    held(session, 42, id=1, list="groceries")  # another rule of the policy asks, too


def test_each_step_is_in_the_audit_without_values(world: World) -> None:
    session = world.session()
    rule = saved(world, session, request(times=1), id=1, list="groceries")
    session.ask(2, id=2, list="groceries")
    steps = [(one.outcome, one.rule, one.by) for one in world.audit.rules]
    assert steps == [("saved", rule.id, rule.by), ("used up", rule.id, "")]
    first = world.audit.rules[0]
    answered = world.audit.events[0]
    assert (first.approval, first.shown) == (answered.approval, answered.shown)
    assert (first.ticked, first.times, first.answers) == (("id",), 1, ("writes",))
    assert "groceries" not in msgspec.json.encode(world.audit.rules).decode()


def test_what_waits_is_judged_again(world: World) -> None:
    session, bob = world.session(), world.approver()
    first = held(session, 1, id=1, list="a")
    same = world.session(2)
    held(same, 1, id=1, list="a")
    covered, other = held(session, 2, id=2, list="a"), held(session, 3, id=1, list="b")
    elsewhere = session.ask(4, "another", id=1)
    session.hears()
    same.hears()
    assert bob.asks(always(first)).startswith("Done")
    told = {one.hold: (one.what, one.by) for one in session.hears() if one}
    assert told == {1: ("approved", "uid 1001 (command)"), 2: ("void", ""), 3: ("void", "")}
    assert [one.what for one in same.hears() if one] == ["void"]
    assert isinstance(session.ask(5, id=2, list="a"), Approved)
    assert held(session, 6, id=1, list="b").id == other.id  # the same question
    assert isinstance(elsewhere, AwaitingApproval)
    assert {one.id for one in bob.listed()} == {other.id, elsewhere.id}
    assert covered.id != other.id


def test_bounds(world: World, clock: Clock) -> None:
    session, bob = world.session(), world.approver()
    counted = saved(world, session, request(for_s=0, times=2), id=1)
    answers = [session.ask(number, id=number) for number in (2, 3, 4)]
    assert [type(answer) for answer in answers] == [Approved, Approved, AwaitingApproval]
    assert rules_of(bob) == []
    assert not (rule_files.FOLDER / f"{counted.id}.json").exists()
    timed = saved(world, session, request(for_s=60), id=5)
    assert isinstance(session.ask(6, id=6), Approved)
    clock.ahead_s = 61
    held(session, 7, id=7)
    world.approving.catch_up(time.monotonic())
    assert world.audit.rules[-1].outcome == "expired"
    assert world.audit.rules[-1].rule == timed.id
    assert list(rule_files.FOLDER.iterdir()) == []
    clock.ahead_s = 0


def test_a_rule_of_a_session_ends_with_it_and_is_not_stored(world: World) -> None:
    session, other = world.session(), world.session(2)
    rule = saved(world, session, request(for_s=0, in_session=True), id=1)
    assert isinstance(session.ask(2, id=2), Approved)
    held(other, 1, id=2)
    assert list(rule_files.FOLDER.iterdir()) == []
    world.approving.is_over(session.child)
    assert (world.audit.rules[-1].outcome, world.audit.rules[-1].rule) == ("session over", rule.id)
    assert rules_of(world.approver()) == []


def test_revoked_by_any_account_that_sees_it(world: World) -> None:
    session = world.session()
    for uid in (1000, 1001, 0, WEB_UID):  # the agent's own account: it narrows what passes
        rule = saved(world, session, id=uid)
        groups = (50,) if uid == 1001 else ()
        somebody = world.somebody(uid, *groups)
        assert somebody.asks(RevokeRequest(rule.id)).startswith("Done")
        held(session, 3, id=uid + 1)
        session.asking.withdraw(3, will_resume=False)
        world.serve()
    assert [one.outcome for one in world.audit.rules[:2]] == ["saved", "revoked"]
    assert [one.by for one in world.audit.rules[1::2]][1:3] == ["uid 1001", "root"]


@pytest.mark.parametrize("uid", [1003, HOOK_UID])
def test_others_neither_revoke_nor_see_it(world: World, uid: int) -> None:
    rule = saved(world, world.session(), id=1)
    somebody = world.somebody(uid)
    assert somebody.asks(RevokeRequest(rule.id)).startswith("gone: no approval rule")
    assert rules_of(somebody) == ([] if uid == 1003 else [rule])
    assert somebody.asks(RevokeRequest("../etc")).startswith("gone: no approval rule")
    assert rules_of(world.approver()) == [rule]


def test_the_agents_own_account_needs_a_proof_even_with_same_uid(world: World) -> None:
    waits, alice = held(world.session(), 1, id=1), world.somebody(1000)
    world.approving.deciding.same_uid = True
    assert alice.asks(always(waits)).startswith("proof: ")
    assert rules_of(alice) == []
    once = DecideRequest(id=waits.id, digest=waits.shown, verdict=Verdict.APPROVE)
    assert alice.asks(once).startswith("Done")  # as it is for one request


@pytest.mark.usefixtures("passwords")
def test_with_a_proof_it_may(world: World) -> None:
    session, root = world.session(uid=0), world.somebody(0)
    waits = held(session, 1, id=1)
    proof = {"proof": Proof.PASSWORD, "user": "root"}
    assert root.asks(always(waits, password=b"wrong", **proof)) == "proof: wrong password"
    assert rules_of(root) == []
    assert root.asks(always(waits, password=b"right", **proof)).startswith("Done")
    assert [rule.by for rule in rules_of(root)] == ["root (command, password)"]


@pytest.mark.parametrize(
    ("glob", "why"),
    [("a*", "polkit"), ("x" * 200, "cannot be shown"), ("\u202e", "cannot be shown")],
)
def test_the_window_of_polkit_shows_the_whole_rule(
    world: World, monkeypatch: pytest.MonkeyPatch, glob: str, why: str
) -> None:
    shown: list[str] = []

    def by_polkit(_peer: object, _start: int, details: dict[str, str]) -> AuthResult:
        shown.append(details["id"])
        return AuthResult(why="no polkit")

    monkeypatch.setattr(decisions, "by_polkit", by_polkit)
    monkeypatch.setattr(
        world.approving.deciding, "prove", lambda _person, _user, check, then: then(check())
    )
    waits, alice = held(world.session(), 1, id="a"), world.somebody(1000)
    rule = request(ticked=(TickedArgument("id", glob),))
    answer = alice.asks(always(waits, rule, proof=Proof.POLKIT))
    assert answer.startswith("proof: ")
    assert why in answer
    assert shown == ([f"{waits.id}: approve rule {rule}"] if why == "polkit" else [])


def test_rules_of_a_removed_server_end(world: World) -> None:
    kept, gone = saved(world, world.session(1), id=1), world.session(2, server="plain")
    waits = held(gone, 1, id=1)
    assert world.approver().asks(always(waits)).startswith("Done")
    world.approving.follow(AccessList(by_server={"sqlite": ADMISSIONS.by_server[HUB]}))
    assert rules_of(world.approver()) == [kept]
    assert world.audit.rules[-1].outcome == "server removed"


def test_others_and_the_agents_window_cannot_save(world: World) -> None:
    session = world.session()
    waits = held(session, 1, id=1)
    assert world.somebody(1003).asks(always(waits)).startswith("gone")
    assert world.somebody(HOOK_UID).asks(always(waits)).startswith("not-you")
    assert world.approver().asks(always(waits, channel=Channel.CLIENT)).startswith("wrong")
    session.asking.take_form_answer(1, NO_CLIENT, FormAnswer.APPROVED)
    world.serve()
    assert [told.what for told in session.hears() if told] == ["approved"]
    held(session, 2, id=1)
    assert rules_of(world.approver()) == []


UNSAVABLE = [
    (request(for_s=0), "needs a bound"),
    (request(ticked=(TickedArgument("sql"),)), "'sql' decides"),
    (request(ticked=(TickedArgument("path"),)), "give a pattern"),
    ("{}", "needs a bound"),
    ("", "truncated"),
    ('{"for_s":60,"more":1}', "unknown field"),
    ("x" * 5000, "over 4096 bytes"),
    ('{"times":1,"times":9999}', "not in canonical form"),
]


@pytest.mark.parametrize(("rule", "why"), UNSAVABLE)
def test_an_unsavable_rule_decides_nothing(world: World, rule: str, why: str) -> None:
    session, bob = world.session(), world.approver()
    session.asking_rules = AskingRules(rules=("writes",), deciding=("path",), exact=("sql",))
    waits = held(session, 1, id=1, sql="x", path="/a")
    (listed,) = bob.listed()
    assert (listed.asking, listed.deciding, listed.exact) == (("writes",), ("path",), ("sql",))
    session.hears()
    answer = bob.asks(always(waits, rule or "\t"))
    assert answer.startswith("wrong: ")
    assert why in answer or not rule
    assert answer.endswith("[E-APPROVAL-RULE]")
    assert session.hears() == []
    assert world.audit.events[-1].outcome == "refused"
    assert bob.asks(always(waits)).startswith("Done")  # its permitted twin


def test_rules_are_limited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpwrap.core.approval.rule_book.MAX_RULES_OF_AGENT", 1)
    session, bob = world.session(), world.approver()
    saved(world, session, id=1)
    waits = held(session, 2, id=1, list="a")
    assert bob.asks(always(waits)).endswith("[E-APPROVAL-RULE-LIMIT]")


def test_without_audit_or_disk_no_rule_is_saved(
    world: World, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    session, bob = world.session(), world.approver()
    waits = held(session, 1, id=1)
    world.audit.is_broken = True
    assert bob.asks(always(waits)) == "busy: the audit cannot be written, so no rule is saved"
    world.audit.is_broken = False
    folder = rule_files.FOLDER
    monkeypatch.setattr(rule_files, "FOLDER", folder / "missing")
    assert bob.asks(always(waits)).endswith("[E-APPROVAL-RULE-NOT-STORED]")
    assert [one.outcome for one in world.audit.rules] == ["saved", "not stored"]
    assert rules_of(bob) == []
    monkeypatch.setattr(rule_files, "FOLDER", folder)
    with monkeypatch.context() as few:
        few.setattr(memfd, "sealed", no_descriptor)
        assert bob.asks(always(waits)).endswith("[E-APPROVAL-RULE-NOT-STORED]")
        assert bob.asks(SavedRulesRequest()) == "busy: Too many open files"
        assert SavedRules(world.audit).rules() == []
    assert bob.asks(always(waits)).startswith("Done")
    assert "cannot be stored: No such file" in capfd.readouterr().err


def no_descriptor(_name: str, _data: bytes) -> int:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_a_count_that_cannot_be_stored_lets_nothing_pass(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = world.session()
    saved(world, session, request(times=5), id=1)
    monkeypatch.setattr(rule_files, "FOLDER", rule_files.FOLDER / "missing")
    held(session, 2, id=2)


def test_without_the_record_of_the_answer_the_rule_is_withdrawn(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, bob = held(world.session(), 1, id=1), world.approver()
    monkeypatch.setattr(world.audit, "answered", lambda _: False)
    assert bob.asks(always(waits)).startswith("busy")
    assert rules_of(bob) == []
    assert list(rule_files.FOLDER.iterdir()) == []


def test_a_revoked_rule_whose_file_stays_is_an_error(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    session, bob = world.session(), world.approver()
    rule = saved(world, session, id=1)
    path = rule_files.FOLDER / f"{rule.id}.json"
    path.unlink()
    path.mkdir()  # which unlink(2) refuses
    assert bob.asks(RevokeRequest(rule.id)).endswith("[E-APPROVAL-RULE-NOT-STORED]")
    assert f"approval rule {rule.id}: cannot be removed" in capfd.readouterr().err
    held(session, 2, id=2)


def test_a_rule_for_a_hub_is_none_for_its_member(world: World) -> None:
    outer, inner = world.session(1, server=HUB), world.session(2, via="12-1")
    bob = world.approver()
    waits = outer.ask(1, "sqlite__drop", id=1)
    assert isinstance(waits, AwaitingApproval)
    assert bob.asks(always(waits)).startswith("Done")
    assert isinstance(inner.ask(1, id=1), Approved)  # by the person's answer, once
    assert isinstance(outer.ask(2, "sqlite__drop", id=2), Approved)
    of_member = held(inner, 2, id=2)
    assert bob.asks(always(of_member)).startswith("Done")
    assert isinstance(inner.ask(3, id=3), Approved)


def test_a_session_cannot_use_a_rule_of_another_tool(world: World) -> None:
    session = world.session()
    rule = saved(world, session, id=1)
    child, rules = session.child, world.approving._rules
    assert rules.use(child, rule.id, "tools/call", "drop") == replace(rule, approved="")
    assert rules.use(child, rule.id, "tools/call", "other") is None
    assert rules.use(child, rule.id, "prompts/get", "drop") is None
    assert rules.use(world.session(2, uid=1003).child, rule.id, "tools/call", "drop") is None
    assert rules.use(world.session(3, server="plain").child, rule.id, "tools/call", "drop") is None


def test_rules_are_there_after_a_restart(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    session = world.session()
    timed = saved(world, session, id=1)
    counted = saved(world, session, request(for_s=0, times=3), id=1, list="a")
    session.ask(5, id=5, list="a")
    folder = rule_files.FOLDER
    (folder / ".unfinished.json").write_text("x")
    (folder / "0000aaaa.json").write_text("x")
    (folder / "0000bbbb.json").write_bytes((folder / f"{timed.id}.json").read_bytes())
    damaged = (folder / f"{timed.id}.json").read_bytes().replace(b'"id"', b'"di"')
    (folder / "0000cccc.json").write_bytes(damaged)
    found = SavedRules(world.audit).rules()
    assert [(rule.id, rule.times) for rule in found] == [(timed.id, 0), (counted.id, 2)]
    assert found[0] == timed
    err = capfd.readouterr().err
    for name in ("aaaa", "bbbb", "cccc"):
        assert f"0000{name}.json: not in force" in err
    assert not (folder / ".unfinished.json").exists()
    assert oct((folder / f"{timed.id}.json").stat().st_mode)[-4:] == "0600"


def test_the_memory_that_sessions_inherit_has_no_approved_call(world: World) -> None:
    saved(world, world.session(), id=1, list="groceries")
    for rules in (world.approving._rules, SavedRules(world.audit)):
        (rule,) = rules._book.rules()
        assert rule.approved == ""
        (fd,) = rules._document_fd_by_id.values()
        assert b"groceries" in memfd.read_all(fd)
        rules._end([rule], "expired")
        assert rules._document_fd_by_id == {}


def test_a_missing_folder_is_no_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_files, "FOLDER", tmp_path / "missing")
    assert rule_files.read_all() == []


def test_the_approver_is_named_with_the_rule(world: World) -> None:
    rule = saved(world, world.session(), id=1)
    assert passed_by(rule) == f"rule {rule.id} of uid 1001 (command)"


def test_a_file_that_cannot_be_removed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long"):
        rule_files.remove("x" * 300, tmp_path)
    rule_files.remove("missing", tmp_path)  # the twin
