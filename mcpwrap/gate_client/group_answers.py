"""Groups of questions with their documents, and one decision for each, with its own digest."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from mcpwrap.core.approval.views.question_groups import are_of_one_kind
from mcpwrap.core.wire.approval_socket import DecideRequest, Pending, Verdict
from mcpwrap.gate_client.approvals import (
    ApprovalRefusedError,
    QuestionDetails,
)
from mcpwrap.gate_client.user_approvals import AnyApprovals

_OUTCOME_BY_VERDICT = {
    Verdict.APPROVE: "approved",
    Verdict.DENY: "denied",
    Verdict.DENY_AND_STOP: "denied",
}
# Refusals of one question alone. Any other, such as that of a password, is one of all.
_OUTCOME_BY_REFUSAL = {"gone": "gone", "late": "expired", "changed": "changed"}


class PendingCall(msgspec.Struct, frozen=True):
    """Pending call: its entry in the list, and its details."""

    pending: Pending
    seen: QuestionDetails


def members_of(gate: AnyApprovals, pending: Iterable[Pending]) -> list[PendingCall]:
    """Return those calls of a group that are still pending, with their documents."""
    found: list[PendingCall] = []
    for one in pending:
        try:
            member = PendingCall(one, gate.show(one.id))
        except ApprovalRefusedError as error:
            if error.reason not in _OUTCOME_BY_REFUSAL:
                raise
            continue
        if not found or are_of_one_kind(found[0].seen.question, member.seen.question):
            found.append(member)
    return found


def send(
    gate: AnyApprovals,
    decides: Sequence[DecideRequest],
    tell: Callable[[DecideRequest, str], None] = lambda _, __: None,
) -> list[str]:
    """Send the decisions one after the other, and return their outcomes.

    Raises:
        ApprovalRefusedError: the gate refused one for a reason that holds for the others; those
            before it are decided.
    """
    outcomes = []
    for decide in decides:
        try:
            gate.decide(decide)
            outcome = _OUTCOME_BY_VERDICT[decide.verdict]
        except ApprovalRefusedError as error:
            if error.reason not in _OUTCOME_BY_REFUSAL:
                raise
            outcome = _OUTCOME_BY_REFUSAL[error.reason]
        outcomes.append(outcome)
        tell(decide, outcome)
    return outcomes
