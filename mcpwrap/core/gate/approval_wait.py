"""Approval wait of a request: progress notifications, elicitation, resuming by `requestState`."""

from math import ceil, inf

from mcpwrap.core.approval.client_forms import PERSON_S, ClientIdentity, FormAnswer
from mcpwrap.core.gate import decision_records, elicitation, error_responses
from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.gate.pending_approvals import ROUND_KEYS, PendingApproval
from mcpwrap.core.gate.ports import ApprovalRequest
from mcpwrap.core.gate.previews import preview_requests
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
from mcpwrap.core.protocol.methods import IN_ROUNDS, LOG, PROGRESS, ProtocolEra
from mcpwrap.core.protocol.strict_json import encode
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.text.uris import bare
from mcpwrap.core.wire.approval_socket import PAGE_SOCKET, PAGE_URL

PROGRESS_EVERY_S = 5.0
MAX_REASON_CHARS = 200  # of a person's reason, in journal and audit; the agent gets all of it
_PROGRESS_STEP = 1e-6  # so small that any progress which the server reports later is more


def begin(session: SessionState, pending: PendingApproval) -> list[MessageOutcome]:
    """Tell the agent and its user that a request waits; its own window asks, if it is to.

    The server is asked for a preview, if root has named a tool for it.
    """
    told = preview_requests.begin(session, pending)
    told.append(MessageOutcome(told=f"mcpwrap: {_waits(session, pending)}"))
    if pending.token is None and _hears_logs(session):
        told.append(MessageOutcome(answer=_log_message(_waits(session, pending))))
    if not pending.wanted.by_form:
        return told
    pending.asked_by_form_at_s = session.now_s
    if pending.asked.era is ProtocolEra.MODERN:
        inputs = elicitation.input_requests(pending, *_shown(session, pending))
        return [*told, _suspend_by_state(session, pending, inputs)]
    pending.window = elicitation.id_for(pending)
    form = elicitation.elicitation(pending, *_shown(session, pending))
    return [*told, MessageOutcome(answer=form)]


def _shown(session: SessionState, pending: PendingApproval) -> tuple[str, float]:
    """Return what a form shows beside the request: the server's name if known, the time left."""
    return session.owner.server if session.owner else "", _left_s(session, pending)


def _left_s(session: SessionState, pending: PendingApproval) -> float:
    """Return the time until the question expires; infinity if it does not."""
    left_s = pending.approval.left_s
    return inf if left_s is None else max(0.0, left_s - (session.now_s - pending.asked_at_s))


def _waits(session: SessionState, pending: PendingApproval) -> str:
    """Return the line that says where the user answers, and how long that is possible."""
    id_, left_s = pending.approval.id, _left_s(session, pending)
    left = f", {ceil(left_s)} s left" if left_s < inf else ""
    if session.owner is not None and session.owner.is_user:
        where = f"mcpwrap approvals --user show {id_}"
    else:
        where = f"mcpwrap approvals show {id_} or, where {PAGE_SOCKET} is on, {PAGE_URL}{id_}"
    target = shown(bare(pending.asked.target))
    return f"{target} waits for approval {id_}{left}: {where}"


def _hears_logs(session: SessionState) -> bool:
    """Return whether the agent is sent log messages of this level, which it may have set."""
    return session.has_logging and session.log_level in {"", "debug", "info", "notice"}


def _log_message(text: str) -> bytes:
    params: Json = {"level": "notice", "logger": "mcpwrap", "data": text}
    return encode({"jsonrpc": "2.0", "method": LOG, "params": params})


def asks_by_form(
    session: SessionState, request: Request, context: RequestContext, wanted: ApprovalRequest
) -> bool:
    """Return whether the agent's own window is to ask: it declares forms, and shows the whole."""
    if context.era is ProtocolEra.MODERN:
        # Only once: an agent whose user closes the window retries at once.
        may_retry = context.method in IN_ROUNDS and not context.is_resumed
        has_form = may_retry and elicitation.is_offered(request)
    else:
        has_form = session.can_elicit
    if not has_form or not elicitation.fits(wanted):
        return False
    client = client_of(session, request, context)
    return session.approvals.asks_by_form(client, in_client=wanted.in_client)


def client_of(session: SessionState, request: Request, context: RequestContext) -> ClientIdentity:
    """Return the client whose window a request comes from."""
    is_modern = context.era is ProtocolEra.MODERN
    return elicitation.client_of(request.params) if is_modern else session.client


def take_form_answer(session: SessionState, pending: PendingApproval, answer: FormAnswer) -> None:
    """Take an answer of the agent's own window; no person gave one that came at once."""
    if session.now_s - pending.asked_by_form_at_s < PERSON_S:
        answer = FormAnswer.BY_ITSELF
    session.approvals.take_form_answer(pending.number, pending.client, answer)


def tick(session: SessionState) -> list[MessageOutcome]:
    """Return the messages to the agent that are due: progress, and the suspension of requests."""
    outcomes = preview_requests.tick(session)
    for hold in session.pending_approvals:
        waited_s = session.now_s - hold.since_s
        if waited_s >= session.policy.times.wait_s:
            outcomes += _suspend(session, hold)
        elif hold.token is not None and waited_s >= hold.progress_sent * PROGRESS_EVERY_S:
            outcomes.append(_progress(session, hold, waited_s))
    return outcomes


def due_in_s(session: SessionState) -> float | None:
    """Return the seconds until `tick` has a message to send; None if no request is held."""
    due = [_due_at_s(session, hold) - session.now_s for hold in session.pending_approvals]
    preview_due_s = preview_requests.due_in_s(session)
    if preview_due_s is not None:
        due.append(preview_due_s)
    return max(0.0, min(due)) if due else None


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
    session.previews.open.clear()
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


def _progress(session: SessionState, pending: PendingApproval, waited_s: float) -> MessageOutcome:
    # Notifications that were missed are not sent later.
    pending.progress_sent = int(waited_s // PROGRESS_EVERY_S) + 1
    params: Json = {
        "progressToken": pending.token,
        "progress": pending.progress_sent * _PROGRESS_STEP,
        "message": _waits(session, pending),
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
    if answer is not None and hold.wanted.by_form:
        take_form_answer(session, hold, answer)
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
