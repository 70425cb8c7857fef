"""Approval of a hub's call: it covers the member's call that it leads to, once."""

import time

import pytest

from mcpwrap.core.approval import document as approval_document
from mcpwrap.core.approval.approved_calls import VALID_FOR_S
from mcpwrap.core.approval.client_forms import NO_CLIENT, FormAnswer
from mcpwrap.core.approval.document import Question
from mcpwrap.core.gate.ports import Approved, AwaitingApproval
from mcpwrap.core.wire.approval_socket import DecideRequest, Scope, Verdict
from tests.unit.as_gate.approving_world import HUB, Session, Somebody, World

TOOL, ARGUMENTS = "drop", {"table": 7}
AT_HUB = f"sqlite__{TOOL}"


def approve(bob: Somebody, waits: object, **more: object) -> str:
    assert isinstance(waits, AwaitingApproval)
    fields = {"id": waits.id, "digest": waits.shown, "verdict": Verdict.APPROVE, **more}
    bob.says(DecideRequest(**fields))  # type: ignore[arg-type]
    return waits.shown


def sessions(world: World, member: str = "sqlite") -> tuple[Session, Session]:
    """Return the session of a hub, and that of its member for it."""
    return world.session(1, server=HUB), world.session(2, server=member, via="12-1")


def test_an_approved_call_of_a_hub_passes_at_the_member_once(world: World) -> None:
    (outer, inner), bob = sessions(world), world.approver()
    waits = outer.ask(1, AT_HUB, **ARGUMENTS)
    shown = approve(bob, waits)
    assert isinstance(waits, AwaitingApproval)
    assert inner.ask(1, TOOL, **ARGUMENTS) == Approved(waits.id, shown, "uid 1001 (command)")
    assert inner.hears() == []
    assert isinstance(inner.ask(2, TOOL, **ARGUMENTS), AwaitingApproval)
    assert len(world.audit.events) == 1


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [(TOOL, {"table": 8}), (TOOL, {}), ("other", ARGUMENTS), (AT_HUB, ARGUMENTS)],
)
def test_it_covers_no_other_call(world: World, tool: str, arguments: dict[str, int]) -> None:
    (outer, inner), bob = sessions(world), world.approver()
    approve(bob, outer.ask(1, AT_HUB, **ARGUMENTS))
    assert isinstance(inner.ask(1, tool, **arguments), AwaitingApproval)
    assert isinstance(inner.ask(2, TOOL, **ARGUMENTS), Approved)


@pytest.mark.parametrize(
    ("uid", "server", "via"),
    [
        (1000, "sqlite", "12-3"),  # of another session of the hub
        (1000, "sqlite", ""),  # the agent's own
        (1000, "plain", "12-1"),  # another member
        (1003, "sqlite", "12-1"),  # another agent: the monitor opens no such session
    ],
)
def test_it_covers_no_other_session(world: World, uid: int, server: str, via: str) -> None:
    (outer, inner), bob = sessions(world), world.approver()
    approve(bob, outer.ask(1, AT_HUB, **ARGUMENTS))
    other = world.session(4, uid, server, via)
    assert isinstance(other.ask(1, TOOL, **ARGUMENTS), AwaitingApproval)
    assert isinstance(inner.ask(1, TOOL, **ARGUMENTS), Approved)


def test_without_an_approval_the_member_asks_itself(world: World) -> None:
    """Where the member's rule alone asks, a person is asked once too."""
    (outer, inner), bob = sessions(world), world.approver()
    waits = inner.ask(1, TOOL, **ARGUMENTS)
    assert isinstance(waits, AwaitingApproval)
    assert [one.server for one in bob.listed()] == ["sqlite"]
    approve(bob, outer.ask(1, AT_HUB, **ARGUMENTS), verdict=Verdict.DENY)
    assert isinstance(inner.ask(2, TOOL, **ARGUMENTS), AwaitingApproval)


def test_a_call_of_another_server_covers_nothing(world: World) -> None:
    """A server whose calls are approved is not a hub for that."""
    plain, inner = world.session(1, server="plain"), world.session(2, via="12-1")
    approve(world.approver(), plain.ask(1, AT_HUB, **ARGUMENTS))
    assert isinstance(inner.ask(1, TOOL, **ARGUMENTS), AwaitingApproval)


def test_each_run_of_a_standing_approval_covers_one_call(world: World) -> None:
    (outer, inner), bob = sessions(world), world.approver()
    approve(bob, outer.ask(1, AT_HUB, **ARGUMENTS), times=2, scope=Scope.SESSION)
    assert isinstance(inner.ask(1, TOOL, **ARGUMENTS), Approved)
    assert isinstance(inner.ask(2, TOOL, **ARGUMENTS), AwaitingApproval)
    assert isinstance(outer.ask(2, AT_HUB, **ARGUMENTS), Approved)
    assert isinstance(inner.ask(3, TOOL, **ARGUMENTS), Approved)


@pytest.mark.parametrize(
    ("member", "in_client", "is_covered"),
    [
        ("sqlite", True, True),
        ("sqlite", False, False),  # another rule of the member allows it, and this one does not
        ("plain", False, False),
        ("plain", True, False),  # a session's process claims it, and no rule has it
    ],
)
def test_the_agents_own_window_counts_where_the_members_rule_allows_it(
    world: World, member: str, *, in_client: bool, is_covered: bool
) -> None:
    outer, inner = sessions(world, member)
    inner.in_client = in_client
    outer.ask(1, f"{member}__{TOOL}", **ARGUMENTS)
    outer.asking.take_form_answer(1, NO_CLIENT, FormAnswer.APPROVED)
    world.serve()
    answer = inner.ask(1, TOOL, **ARGUMENTS)
    assert isinstance(answer, Approved if is_covered else AwaitingApproval)


def test_it_expires(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    (outer, inner), bob = sessions(world), world.approver()
    now_s = time.monotonic()
    approve(bob, outer.ask(1, AT_HUB, **ARGUMENTS))
    monkeypatch.setattr(time, "monotonic", lambda: now_s + VALID_FOR_S + 5)
    assert isinstance(inner.ask(1, TOOL, **ARGUMENTS), AwaitingApproval)


@pytest.mark.parametrize("how", ["end", "policy"])
def test_it_ends_with_the_hubs_session_and_with_the_policy(world: World, how: str) -> None:
    (outer, inner), bob = sessions(world), world.approver()
    approve(bob, outer.ask(1, AT_HUB, **ARGUMENTS))
    if how == "end":
        world.approving.is_over(outer.child)
    else:
        world.approving.void()
    assert isinstance(inner.ask(1, TOOL, **ARGUMENTS), AwaitingApproval)


def test_the_process_of_a_hubs_session_cannot_change_what_was_approved(world: World) -> None:
    """It is bound to the document that the person was shown."""
    (outer, inner), bob = sessions(world), world.approver()
    shown = approve(bob, outer.ask(1, AT_HUB, table=8))
    question = Question(
        agent_uid=1000, server=HUB, method="tools/call", target=AT_HUB, definition="",
        params={"name": AT_HUB, "arguments": {"table": 8}}, policy="12ab",
    )  # fmt: skip
    assert shown == approval_document.digest(approval_document.document(question))
    assert isinstance(inner.ask(1, TOOL, **ARGUMENTS), AwaitingApproval)
    assert isinstance(inner.ask(2, TOOL, table=8), Approved)
