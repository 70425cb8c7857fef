"""Accounts that can answer an agent's questions; without one the agent is refused at once."""

import grp
import pwd
from pathlib import Path

import pytest

from mcpwrap.as_gate.approvals import authentication, reachable
from mcpwrap.as_gate.approvals.authentication import account_of
from mcpwrap.as_gate.approvals.reachable import KNOWN_FOR_S
from mcpwrap.core.approval import client_forms
from mcpwrap.core.approval.client_forms import (
    NO_CLIENT,
    ClientIdentity,
    FormAnswer,
    FormRecord,
)
from mcpwrap.core.gate.ports import ApprovalUnavailable, AwaitingApproval
from mcpwrap.core.wire.approval_socket import WatchRequest
from mcpwrap.core.wire.approver_passwords import Approver, Approvers, encode
from mcpwrap.session.approvals import client_forms_file
from tests.unit.as_gate.approving_world import HUB, World

AGENT_UID = 1000  # of the sessions of `World`


@pytest.fixture(autouse=True)
def passwords(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(authentication, "APPROVERS", tmp_path / "approvers.json")
    return tmp_path / "approvers.json"


@pytest.fixture
def alone(world: World) -> World:
    """Return a machine where no account was made an approver."""
    world.members = frozenset()
    return world


def is_asked(world: World, server: str = "plain", via: str = "") -> bool:
    answer = world.session(9, server=server, via=via).ask(1)
    assert isinstance(answer, AwaitingApproval | ApprovalUnavailable)
    return isinstance(answer, AwaitingApproval)


def test_without_an_approver_the_agent_is_told_at_once(alone: World) -> None:
    answer = alone.session(server="plain").ask(1)
    name = account_of(AGENT_UID)
    assert isinstance(answer, ApprovalUnavailable)
    assert answer.cause == "nobody"
    assert answer.why == f"no account can approve calls of {name or 'uid 1000'}"
    assert "`sudo usermod -aG mcpwrap-approvers USER`" in answer.remedy
    assert f"`sudo mcpwrap approvals passwd {name or 'USER'}`" in answer.remedy


@pytest.mark.parametrize(
    ("members", "waits"),
    [
        ({1001}, True),
        ({AGENT_UID, 1001}, True),
        ({AGENT_UID}, False),  # as a member, too, it would need a proof
    ],
)
def test_with_another_member_of_the_group_it_waits(
    world: World, members: set[int], *, waits: bool
) -> None:
    world.members = frozenset(members)
    assert is_asked(world) is waits


@pytest.mark.parametrize(("uid", "waits"), [(AGENT_UID, True), (1003, False)])
def test_with_the_agents_own_password_it_waits(
    alone: World, passwords: Path, uid: int, *, waits: bool
) -> None:
    passwords.write_text(encode(Approvers(by_user={"alice": Approver(uid=uid, hash="$")})))
    assert is_asked(alone) is waits


@pytest.mark.parametrize("text", ["", "{", '{"by_user": 1}'])
def test_a_damaged_file_has_no_password(alone: World, passwords: Path, text: str) -> None:
    passwords.write_text(text)
    assert not is_asked(alone)


def test_with_polkit_the_agents_account_can_answer(
    alone: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reachable, "has_polkit", lambda: True)
    assert is_asked(alone)


def test_where_root_allows_the_agents_own_account_it_waits(alone: World) -> None:
    alone.approving.deciding.same_uid = True
    assert is_asked(alone)


@pytest.mark.parametrize(
    ("uid", "watches", "waits"),
    [
        (0, True, True),  # root can always answer
        (0, False, False),
        (AGENT_UID, True, False),  # only with a proof, which it does not have
        (1002, True, False),
    ],
)
def test_who_watches_and_may_answer_is_asked(
    alone: World, uid: int, *, watches: bool, waits: bool
) -> None:
    person = alone.somebody(uid)
    if watches:
        person.says(WatchRequest())
    assert is_asked(alone) is waits


@pytest.mark.parametrize(("via", "waits"), [("", True), (HUB, False)])  # a hub has no window
def test_a_window_of_the_agent_needs_no_approver(alone: World, via: str, *, waits: bool) -> None:
    assert is_asked(alone, "sqlite", via=via) is waits  # its rule has `ask_in_client`


@pytest.mark.parametrize(
    ("answer", "is_given_up"),
    [
        (FormAnswer.BY_ITSELF, True),
        (FormAnswer.CLOSED, True),
        (FormAnswer.DENIED, False),  # which is an answer
    ],
)
def test_a_window_without_a_person_is_given_up_where_no_other_can_answer(
    alone: World, answer: FormAnswer, *, is_given_up: bool
) -> None:
    session = alone.session(server="sqlite")
    assert isinstance(session.ask(1), AwaitingApproval)
    session.asking.take_form_answer(1, NO_CLIENT, answer)
    alone.serve()
    [told] = [told for told in session.hears() if told]
    if is_given_up:
        assert told.what == "unasked"
        assert told.reason.startswith("no account can approve calls of")
        assert "mcpwrap approvals passwd" in told.remedy
    else:
        assert told.what == "denied"
    fatigue = alone.approving._book.fatigue._known[AGENT_UID, "sqlite"]
    assert len(fatigue.denied_at_s) == (not is_given_up)  # only a person's denial counts


def test_a_window_without_a_person_leaves_the_question_to_others(world: World) -> None:
    session, bob = world.session(server="sqlite"), world.approver()
    waits = session.ask(1)
    assert isinstance(waits, AwaitingApproval)
    session.asking.take_form_answer(1, NO_CLIENT, FormAnswer.BY_ITSELF)
    world.serve()
    assert [told for told in session.hears() if told] == []
    assert [one.id for one in bob.listed()] == [waits.id]


def test_a_client_that_answered_by_itself_is_remembered(world: World) -> None:
    client, uid = ClientIdentity("batch", "1"), AGENT_UID
    session = world.session(server="sqlite")
    assert isinstance(session.ask(1), AwaitingApproval)
    assert session.asking.asks_by_form(client, in_client=True)
    session.asking.take_form_answer(1, client, FormAnswer.BY_ITSELF)
    world.serve()
    assert not session.asking.asks_by_form(client, in_client=True)
    [record] = world.approving.forms_of(uid).records()  # as the next session of the account has it
    assert record.client == client
    assert world.approving.forms_of(uid + 1).records() == []  # another account's are its own
    assert list(client_forms_file.gate_paths()) == [(uid, client_forms_file.gate_path(uid))]
    assert client_forms_file.read(client_forms_file.gate_path(uid)) == [record]


def test_what_was_measured_is_known_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rules").mkdir()
    record = FormRecord(name="batch", version="1", by_itself_at=1_800_000_000.0)
    for name in (f"client-forms-{AGENT_UID}", "client-forms-.new"):
        (tmp_path / "rules" / name).write_bytes(client_forms.encode([record]))
    world = World(tmp_path, monkeypatch)
    try:
        assert world.approving.forms_of(AGENT_UID).records() == [record]
    finally:
        world.close()


def test_only_an_answer_to_a_question_is_remembered(world: World) -> None:
    """A session's process that sends others makes the monitor write nothing."""
    client = ClientIdentity("batch", "1")
    session = world.session(server="sqlite")
    assert isinstance(session.ask(1), AwaitingApproval)
    session.asking.take_form_answer(2, client, FormAnswer.BY_ITSELF)
    world.serve()
    assert world.approving.forms_of(AGENT_UID).records() == []
    session.asking.take_form_answer(1, client, FormAnswer.BY_ITSELF)
    world.serve()
    assert [one.client for one in world.approving.forms_of(AGENT_UID).records()] == [client]


def test_an_approval_that_was_given_is_used(world: World) -> None:
    """An approver who left does not void what was decided."""
    session, bob = world.session(server="plain"), world.approver()
    waits = session.ask(1)
    assert isinstance(waits, AwaitingApproval)
    world.members = frozenset()
    world.approving._reachable._read_at_s = float("-inf")
    again = session.ask(2)  # joins the question that is pending
    assert isinstance(again, AwaitingApproval)
    assert again.id == waits.id
    assert bob.listed()


def test_a_new_approver_counts_after_a_moment(alone: World) -> None:
    can_answer = alone.approving._reachable.can_answer
    assert not can_answer(AGENT_UID, 100.0)
    alone.members = frozenset({1001})
    assert not can_answer(AGENT_UID, 100.0 + KNOWN_FOR_S / 2)
    assert can_answer(AGENT_UID, 100.0 + 2 * KNOWN_FOR_S)


NOBODY = pwd.getpwnam("nobody")


@pytest.mark.parametrize(
    ("members", "gid", "expected"),
    [
        (["nobody"], 4_000_000, {NOBODY.pw_uid}),
        (["no-such-account", "nobody"], 4_000_000, {NOBODY.pw_uid}),
        ([], NOBODY.pw_gid, {NOBODY.pw_uid}),  # it is the account's primary group
        ([], 4_000_000, set()),
    ],
)
def test_members_of_the_group(
    monkeypatch: pytest.MonkeyPatch, members: list[str], gid: int, expected: set[int]
) -> None:
    group = grp.struct_group(("mcpwrap-approvers", "x", gid, members))
    monkeypatch.setattr(grp, "getgrnam", lambda _: group)
    assert expected <= reachable.member_uids()
    assert bool(reachable.member_uids()) is bool(expected)


def test_a_group_that_does_not_exist_has_no_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachable, "GROUP", "no-such-group")
    assert not reachable.member_uids()


def test_polkit_is_there_if_pkcheck_is() -> None:
    assert reachable.has_polkit() is Path("/usr/bin/pkcheck").exists()
