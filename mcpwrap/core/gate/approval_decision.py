"""Approval decision on an agent's request: hold it, then forward, refuse or judge it again."""

from typing import assert_never

from msgspec.structs import replace

from mcpwrap.core.gate import approval_wait, error_responses
from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.gate.pending_approvals import MAX_HELD, PendingApproval
from mcpwrap.core.gate.ports import (
    ApprovalOutcome,
    ApprovalRequest,
    ApprovalUnavailable,
    Approved,
    AwaitingApproval,
)
from mcpwrap.core.gate.session import (
    Approval,
    JournalNote,
    MessageOutcome,
    NoteKind,
    SessionState,
    blocked,
    subject,
)
from mcpwrap.core.policy.decision import AskingRules, Decision, Judgement
from mcpwrap.core.protocol.jsonrpc import Id, Request, as_id, without
from mcpwrap.core.protocol.methods import TOOLS_CALL, PolicyScope
from mcpwrap.core.text.sanitise import shown


def request_approval(
    session: SessionState,
    request: Request,
    context: RequestContext,
    judged: tuple[PolicyScope, Judgement],
    json: bytes,
) -> MessageOutcome:
    """Request a person's approval; forward, hold or refuse the request by the broker's reply."""
    way, judgement = judged
    if session.pending_approvals.is_full():
        full = f"{MAX_HELD} requests of this session already wait for approval"
        unavailable = ApprovalUnavailable(full)
        return _refuse_unasked(session, (request.id, context), judgement, unavailable)
    number = session.pending_approvals.next_number()
    asked_for = _approval_request(session, request, context, judgement)
    answer = session.approvals.ask(number, asked_for)
    about = subject(context.method, context.target, request.id)
    match answer:
        case Approved(id_, digest, by):
            return MessageOutcome(
                forward=json, rule=judgement.rule, approval=Approval(id_, digest, by)
            )
        case ApprovalUnavailable():
            return _refuse_unasked(session, (request.id, context), judgement, answer)
        case AwaitingApproval(id_, digest):
            state = f"waits for approval {id_}, rule {judgement.rule}"
            note = JournalNote(NoteKind.HELD, f"{about}: {state}", judgement.rule, context.target)
            hold = PendingApproval(
                number=number,
                request=request,
                json=json,
                asked=context,
                way=way,
                judgement=judgement,
                approval=answer,
                wanted=asked_for,
                client=approval_wait.client_of(session, request, context),
                since_s=session.now_s,
                asked_at_s=session.now_s,
                token=_token(request),
            )
            return MessageOutcome(notes=(note,), approval=Approval(id_, digest), held=hold)
        case _:
            assert_never(answer)


def _approval_request(
    session: SessionState, request: Request, context: RequestContext, judgement: Judgement
) -> ApprovalRequest:
    wanted = ApprovalRequest(
        method=context.method,
        target=context.target,
        definition=_definition(session, context),
        params=without(request.params, "_meta"),
        rule=judgement.rule,
        message=judgement.message,
        expires_s=session.policy.times.pending_s,
        in_client=judgement.in_client,
        asking=_asking(session, request, context, judgement),
    )
    return replace(wanted, by_form=approval_wait.asks_by_form(session, request, context, wanted))


def _asking(
    session: SessionState, request: Request, context: RequestContext, judgement: Judgement
) -> AskingRules:
    """Return the rules that ask for approval, among them the one that was decisive."""
    asking = session.policy.asking(context.method, request.params)
    if judgement.rule in asking.rules:
        return asking
    return replace(asking, rules=(judgement.rule, *asking.rules))


def _definition(session: SessionState, context: RequestContext) -> str:
    return session.definition_of(context.target) if context.method == TOOLS_CALL else ""


def refuse_unaccepted(
    session: SessionState, request: Request, context: RequestContext
) -> MessageOutcome | None:
    """Refuse a request for a tool or prompt that is held back; None if it is not."""
    refusal = session.pins.refusal(request.method, request.params) if session.pins else None
    if refusal is None:
        return None
    about = subject(context.method, context.target, request.id)
    note = JournalNote(NoteKind.UNACCEPTED, f"{about}: {refusal.why}", target=context.target)
    told = error_responses.unaccepted(refusal)
    answer = error_responses.respond(session, request.id, context, told)
    return MessageOutcome(answer=answer, notes=(note,))


def handle_outcome(session: SessionState, outcome: ApprovalOutcome) -> list[MessageOutcome]:
    """Return the outcomes for a held request; an empty list if it is not held any more."""
    hold = session.pending_approvals.take(outcome.hold)
    if hold is None:
        return []
    closing = approval_wait.close_elicitation(hold)
    return [*closing, *_finish(session, hold, _decided(session, hold, outcome))]


def _decided(
    session: SessionState, pending: PendingApproval, outcome: ApprovalOutcome
) -> MessageOutcome:
    match outcome.what:
        case "approved":
            return _approved(session, pending, outcome)
        case "denied":
            return _denied(session, pending, outcome)
        case "expired":
            return _expired(session, pending)
        case "void":
            return _judge_again(session, pending)
        case "unasked":
            unavailable = ApprovalUnavailable(outcome.reason, remedy=outcome.remedy)
            asked = pending.request.id, pending.asked
            return _refuse_unasked(session, asked, pending.judgement, unavailable)
        case _:
            assert_never(outcome.what)


def _approved(
    session: SessionState, pending: PendingApproval, outcome: ApprovalOutcome
) -> MessageOutcome:
    """Forward the request, unless the policy blocks it or the pins refuse it by now.

    It is judged again if the tool's definition is not the one that the person was shown.
    """
    if (unaccepted := refuse_unaccepted(session, pending.request, pending.asked)) is not None:
        return unaccepted
    if _definition(session, pending.asked) != pending.wanted.definition:
        return _judge_again(session, pending)
    judgement = session.judge(pending.way, pending.asked.method, pending.request.params)
    if judgement.decision is Decision.BLOCK:
        return _blocked(session, pending, judgement)
    approval = Approval(pending.approval.id, pending.approval.shown, outcome.by)
    return MessageOutcome(pending.json, rule=judgement.rule, approval=approval)


def _judge_again(session: SessionState, pending: PendingApproval) -> MessageOutcome:
    """Judge the request as if it had just arrived: what was shown is not what would run now.

    If it is held again, its waiting time counts from its first arrival.
    """
    if (unaccepted := refuse_unaccepted(session, pending.request, pending.asked)) is not None:
        return unaccepted
    judgement = session.judge(pending.way, pending.asked.method, pending.request.params)
    match judgement.decision:
        case Decision.ALLOW:
            return MessageOutcome(pending.json, rule=judgement.rule)
        case Decision.BLOCK:
            return _blocked(session, pending, judgement)
        case Decision.NEEDS_APPROVAL:
            outcome = request_approval(
                session, pending.request, pending.asked, (pending.way, judgement), pending.json
            )
            if outcome.held is not None:
                outcome.held.continue_from(pending)
            return outcome
        case _:
            assert_never(judgement.decision)


def _finish(
    session: SessionState, pending: PendingApproval, outcome: MessageOutcome
) -> list[MessageOutcome]:
    """Audit the outcome, and add the request to those in flight, or again to those held."""
    done = replace(approval_wait.write(session, pending, outcome), told=_told(pending, outcome))
    if done.forward is not None:
        session.requests_from_agent.add(pending.request.id, pending.asked)
    if done.held is None:
        return [done]
    session.pending_approvals.add(done.held)
    return [done, *approval_wait.begin(session, done.held)]


def _told(pending: PendingApproval, outcome: MessageOutcome) -> str:
    """Return the line on the end of a question; "" if it is asked again."""
    if outcome.held is not None:
        return ""
    by = f", by {shown(outcome.approval.by)}" if outcome.approval and outcome.approval.by else ""
    what = "the call goes on" if outcome.forward is not None else "the call is refused"
    return f"mcpwrap: approval {pending.approval.id}: {what}{by}"


def _denied(
    session: SessionState, pending: PendingApproval, outcome: ApprovalOutcome
) -> MessageOutcome:
    because = f": {outcome.reason}" if outcome.reason else ""
    why, id_ = f"denied by {outcome.by}{because}", pending.approval.id
    refusal = error_responses.denied(session, pending.judgement, why, id_)
    notes = (approval_wait.note(pending, NoteKind.DENIED, why),)
    answer = error_responses.respond(session, pending.request.id, pending.asked, refusal)
    approval = Approval(id_, pending.approval.shown, outcome.by)
    return MessageOutcome(answer=answer, notes=notes, approval=approval)


def _expired(session: SessionState, pending: PendingApproval) -> MessageOutcome:
    id_ = pending.approval.id
    refusal = error_responses.unanswered(session, pending.judgement, id_)
    notes = (approval_wait.note(pending, NoteKind.EXPIRED, "no approver answered in time"),)
    answer = error_responses.respond(session, pending.request.id, pending.asked, refusal)
    approval = Approval(id_, pending.approval.shown)
    return MessageOutcome(answer=answer, notes=notes, approval=approval)


def _blocked(
    session: SessionState, pending: PendingApproval, judgement: Judgement
) -> MessageOutcome:
    context, request_id = pending.asked, pending.request.id
    refusal = error_responses.blocked(session, judgement)
    answer = error_responses.respond(session, request_id, context, refusal)
    notes = blocked(subject(context.method, context.target, request_id), judgement, context.target)
    return MessageOutcome(answer=answer, notes=notes)


def _refuse_unasked(
    session: SessionState,
    asked: tuple[Id, RequestContext],
    judgement: Judgement,
    answer: ApprovalUnavailable,
) -> MessageOutcome:
    request_id, context = asked
    refusal = error_responses.unasked(session, judgement, answer)
    about = subject(context.method, context.target, request_id)
    reason = shown(answer.why, approval_wait.MAX_REASON_CHARS)
    kind = NoteKind.DENIED if answer.cause == "denied" else NoteKind.UNASKED
    note = JournalNote(kind, f"{about}: {reason}", judgement.rule, context.target)
    response = error_responses.respond(session, request_id, context, refusal)
    return MessageOutcome(answer=response, notes=(note,))


def _token(request: Request) -> Id | None:
    meta = request.params.get("_meta")
    return as_id(meta.get("progressToken")) if isinstance(meta, dict) else None
