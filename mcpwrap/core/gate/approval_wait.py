"""Approval wait of a request: progress notifications, elicitation, resuming by `requestState`."""

from mcpwrap.core.gate import decision_records, elicitation, error_responses
from mcpwrap.core.gate.pending_approvals import ROUND_KEYS, PendingApproval
from mcpwrap.core.gate.session import (
    Approval,
    JournalNote,
    MessageOutcome,
    NoteKind,
    SessionState,
    subject,
)
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Id, Request, without
from mcpwrap.core.protocol.methods import IN_ROUNDS, PROGRESS, ProtocolEra
from mcpwrap.core.protocol.strict_json import encode
from mcpwrap.core.text.sanitise import shown

PROGRESS_EVERY_S = 5.0
MAX_REASON_CHARS = 200  # of a person's reason, in journal and audit; the agent gets all of it
_PROGRESS_STEP = 1e-6  # so small that any progress which the server reports later is more


def begin(session: SessionState, pending: PendingApproval) -> list[MessageOutcome]:
    """Elicit the approval in the agent's own window too, if the rule allows it and there is one.

    Only once: an agent whose user closes the window retries at once.
    """
    may_ask = _in_window(session, pending) and not pending.is_resumed
    if not may_ask or not elicitation.fits(pending):
        return []
    if pending.asked.era is ProtocolEra.MODERN:
        if not (_has_rounds(pending) and elicitation.is_offered(pending.request)):
            return []
        return [_suspend_by_state(session, pending, elicitation.input_requests(pending))]
    if not session.can_elicit:
        return []
    pending.window = elicitation.id_for(pending)
    return [MessageOutcome(answer=elicitation.elicitation(pending))]


def _in_window(session: SessionState, pending: PendingApproval) -> bool:
    return session.approvals.has_window and pending.judgement.in_client


def tick(session: SessionState) -> list[MessageOutcome]:
    """Return the messages to the agent that are due: progress, and the suspension of requests."""
    outcomes: list[MessageOutcome] = []
    for hold in session.pending_approvals:
        waited_s = session.now_s - hold.since_s
        if waited_s >= session.policy.times.wait_s:
            outcomes += _suspend(session, hold)
        elif hold.token is not None and waited_s >= hold.progress_sent * PROGRESS_EVERY_S:
            outcomes.append(_progress(hold, waited_s))
    return outcomes


def due_in_s(session: SessionState) -> float | None:
    """Return the seconds until `tick` has a message to send; None if no request is held."""
    if not session.pending_approvals:
        return None
    return max(
        0.0, min(_due_at_s(session, hold) for hold in session.pending_approvals) - session.now_s
    )


def _due_at_s(session: SessionState, pending: PendingApproval) -> float:
    wait_s = session.policy.times.wait_s
    if pending.token is None:
        return pending.since_s + wait_s
    return pending.since_s + min(wait_s, pending.progress_sent * PROGRESS_EVERY_S)


def cancel(session: SessionState, request_id: Id) -> MessageOutcome | None:
    """Withdraw a held request that the agent cancels; None if no request of that id is held."""
    hold = session.pending_approvals.by_request(request_id)
    if hold is None:
        return None
    session.pending_approvals.take(hold.number)
    session.approvals.withdraw(hold.number, will_resume=False)
    about = subject(hold.asked.method, hold.asked.target, request_id)
    text = f"{about}: cancelled while it waited for approval {hold.approval.id}"
    answer = elicitation.close(hold) if hold.window else None
    return MessageOutcome(answer=answer, notes=(JournalNote(NoteKind.WITHDRAWN, text),))


def server_ended(session: SessionState, why: str) -> list[MessageOutcome]:
    """Return an error response for each held request: the server will never receive it."""
    return [
        outcome for hold in session.pending_approvals for outcome in _unanswered(session, hold, why)
    ]


def _unanswered(session: SessionState, pending: PendingApproval, why: str) -> list[MessageOutcome]:
    session.pending_approvals.take(pending.number)
    session.approvals.withdraw(pending.number, will_resume=False)
    outcome = MessageOutcome(
        answer=error_responses.server_ended(pending.request.id, why),
        notes=(note(pending, NoteKind.UNANSWERED, f"the server ended: {why}"),),
        approval=Approval(pending.approval.id, pending.approval.shown),
    )
    return [*close_elicitation(pending), write(session, pending, outcome)]


def close_elicitation(pending: PendingApproval) -> list[MessageOutcome]:
    """Return the cancellation of the elicitation in the agent's window, if one is open there."""
    return [MessageOutcome(answer=elicitation.close(pending))] if pending.window else []


def _progress(pending: PendingApproval, waited_s: float) -> MessageOutcome:
    # Notifications that were missed are not sent later.
    pending.progress_sent = int(waited_s // PROGRESS_EVERY_S) + 1
    id_ = pending.approval.id
    params: Json = {
        "progressToken": pending.token,
        "progress": pending.progress_sent * _PROGRESS_STEP,
        "message": f"Waiting for approval {id_}: mcpwrap approvals show {id_}",
    }
    return MessageOutcome(answer=encode({"jsonrpc": "2.0", "method": PROGRESS, "params": params}))


def _suspend(session: SessionState, pending: PendingApproval) -> list[MessageOutcome]:
    """Tell the agent to retry, before its own timeout; the question stays pending."""
    if _has_rounds(pending):
        return [_suspend_by_state(session, pending, None)]
    session.pending_approvals.take(pending.number)
    session.approvals.withdraw(pending.number, will_resume=True)
    refusal = error_responses.held(session, pending.judgement, pending.approval.id)
    answer = error_responses.respond(session, pending.request.id, pending.asked, refusal)
    return [*close_elicitation(pending), _record_suspension(session, pending, answer)]


def _has_rounds(pending: PendingApproval) -> bool:
    return pending.asked.era is ProtocolEra.MODERN and pending.asked.method in IN_ROUNDS


def _suspend_by_state(
    session: SessionState, pending: PendingApproval, inputs: dict[str, Json] | None
) -> MessageOutcome:
    state = session.pending_approvals.suspend(pending)
    session.approvals.withdraw(pending.number, will_resume=True)
    result: dict[str, Json] = {"resultType": "input_required", "requestState": state}
    if inputs is not None:
        result["inputRequests"] = inputs
    answer = encode({"jsonrpc": "2.0", "id": pending.request.id, "result": result})
    return _record_suspension(session, pending, answer)


def _record_suspension(
    session: SessionState, pending: PendingApproval, answer: bytes
) -> MessageOutcome:
    approval = Approval(pending.approval.id, pending.approval.shown)
    notes = (note(pending, NoteKind.SUSPENDED),)
    return write(session, pending, MessageOutcome(answer=answer, notes=notes, approval=approval))


def note(pending: PendingApproval, kind: NoteKind, why: str = "") -> JournalNote:
    """Return the journal note on a held request."""
    about = subject(pending.asked.method, pending.asked.target, pending.request.id)
    text = f"{about}: approval {pending.approval.id}"
    if why:
        text += f": {shown(why, MAX_REASON_CHARS)}"
    return JournalNote(kind, text, pending.judgement.rule, pending.asked.target)


def restore_params(session: SessionState, request: Request) -> Request:
    """Return a resumed request with the round keys of the server's own rounds; others unchanged.

    Raises:
        StateError: its `requestState` is mcpwrap's, and not valid for this request.
    """
    hold = session.pending_approvals.resume(request)
    if hold is None:
        return request
    answer = elicitation.answer_in(request)
    if answer is not None and _in_window(session, hold):
        session.approvals.answer(hold.number, approves=answer)
    before = {key: hold.request.params[key] for key in ROUND_KEYS if key in hold.request.params}
    return Request(request.id, request.method, {**without(request.params, *ROUND_KEYS), **before})


def write(
    session: SessionState, pending: PendingApproval, outcome: MessageOutcome
) -> MessageOutcome:
    """Audit the outcome of a held request; return it, or a refusal if it cannot be recorded."""
    context = pending.asked
    if decision_records.write_decision(session, context, pending.request.id, outcome):
        return outcome
    if outcome.held is not None:
        session.approvals.withdraw(outcome.held.number, will_resume=False)
    refusal = error_responses.unrecorded()
    answer = error_responses.respond(session, pending.request.id, context, refusal)
    return decision_records.unrecorded(outcome, answer=answer)
