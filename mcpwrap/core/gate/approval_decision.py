"""Approval decision on an agent's request: hold it, then forward, refuse or judge it again."""

from typing import assert_never

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
from mcpwrap.core.policy.decision import Decision, Judgement
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
    """Ask a person, and return what becomes of the request until there is an answer."""
    way, judgement = judged
    if session.pending_approvals.is_full():
        why = f"{MAX_HELD} requests of this session wait for a person already"
        return _not_asked(request.id, context, judgement, why)
    number = session.pending_approvals.next_number()
    wanted = _approval_request(session, request, context, judgement)
    answer = session.approvals.ask(number, wanted)
    about = subject(context.method, context.target, request.id)
    match answer:
        case Approved(id_, digest, by):
            return MessageOutcome(
                forward=json, rule=judgement.rule, approval=Approval(id_, digest, by)
            )
        case ApprovalUnavailable(why):
            return _not_asked(request.id, context, judgement, why)
        case AwaitingApproval(id_, digest):
            by_rule = f"waits for approval {id_}, rule {judgement.rule}"
            note = JournalNote(NoteKind.HELD, f"{about}: {by_rule}", judgement.rule, context.target)
            hold = PendingApproval(
                number=number,
                request=request,
                json=json,
                asked=context,
                way=way,
                judgement=judgement,
                approval=answer,
                definition=wanted.definition,
                since_s=session.now_s,
                token=_token(request),
            )
            return MessageOutcome(notes=(note,), approval=Approval(id_, digest), held=hold)
        case _:
            assert_never(answer)


def _approval_request(
    session: SessionState, request: Request, context: RequestContext, judgement: Judgement
) -> ApprovalRequest:
    return ApprovalRequest(
        method=context.method,
        target=context.target,
        definition=_definition(session, context),
        params=without(request.params, "_meta"),
        rule=judgement.rule,
        message=judgement.message,
        expires_s=session.policy.times.expires_s,
    )


def _definition(session: SessionState, context: RequestContext) -> str:
    return session.definition_of(context.target) if context.method == TOOLS_CALL else ""


def handle_outcome(session: SessionState, outcome: ApprovalOutcome) -> list[MessageOutcome]:
    """Return what becomes of a request that was held; nothing, if it waits no more."""
    hold = session.pending_approvals.take(outcome.hold)
    if hold is None:
        return []
    closing = approval_wait.close_elicitation(hold)
    return [*closing, *_go_on(session, hold, _decided(session, hold, outcome))]


def _decided(
    session: SessionState, pending: PendingApproval, outcome: ApprovalOutcome
) -> MessageOutcome:
    match outcome.what:
        case "approved":
            return _approved(session, pending, outcome)
        case "denied":
            because = f": {outcome.reason}" if outcome.reason else ""
            return _refused(
                pending, NoteKind.DENIED, f"denied by {outcome.by}{because}", outcome.by
            )
        case "expired":
            return _refused(pending, NoteKind.EXPIRED, "nobody answered in time")
        case "void":
            return _judged_anew(session, pending)
        case _:
            assert_never(outcome.what)


def _approved(
    session: SessionState, pending: PendingApproval, outcome: ApprovalOutcome
) -> MessageOutcome:
    """Let it go on, if the policy still would, and the tool is what the person was told it is."""
    if _definition(session, pending.asked) != pending.definition:
        return _judged_anew(session, pending)
    judgement = session.judge(pending.way, pending.asked.method, pending.request.params)
    if judgement.decision is Decision.BLOCK:
        return _denied(pending.request.id, pending.asked, judgement)
    approval = Approval(pending.approval.id, pending.approval.shown, outcome.by)
    return MessageOutcome(pending.json, rule=judgement.rule, approval=approval)


def _judged_anew(session: SessionState, pending: PendingApproval) -> MessageOutcome:
    """Judge it as if it had just come: what was asked is not what would run by now.

    The agent waits for as long as before in all.
    """
    judgement = session.judge(pending.way, pending.asked.method, pending.request.params)
    match judgement.decision:
        case Decision.ALLOW:
            return MessageOutcome(pending.json, rule=judgement.rule)
        case Decision.BLOCK:
            return _denied(pending.request.id, pending.asked, judgement)
        case Decision.NEEDS_APPROVAL:
            asked = request_approval(
                session, pending.request, pending.asked, (pending.way, judgement), pending.json
            )
            if asked.held is not None:
                asked.held.continue_from(pending)
            return asked
        case _:
            assert_never(judgement.decision)


def _go_on(
    session: SessionState, pending: PendingApproval, outcome: MessageOutcome
) -> list[MessageOutcome]:
    """Write it down, and remember what is waited for from then on: an answer, or a person."""
    done = approval_wait.write(session, pending, outcome)
    if done.forward is not None:
        session.requests_from_agent.add(pending.request.id, pending.asked)
    if done.held is None:
        return [done]
    session.pending_approvals.add(done.held)
    return [done, *approval_wait.begin(session, done.held)]


def _refused(pending: PendingApproval, kind: NoteKind, why: str, by: str = "") -> MessageOutcome:
    asked, rule = pending.asked, pending.judgement.rule
    text = f"Refused by mcpwrap ({why}). Approval {pending.approval.id}, rule {rule}."
    answer = error_responses.not_approved(pending.request.id, asked.method, asked.era, text, rule)
    approval = Approval(pending.approval.id, pending.approval.shown, by)
    return MessageOutcome(
        answer=answer, notes=(approval_wait.note(pending, kind, why),), approval=approval
    )


def _denied(request_id: Id, context: RequestContext, judgement: Judgement) -> MessageOutcome:
    answer = error_responses.denied(request_id, context.method, context.era, judgement)
    notes = blocked(subject(context.method, context.target, request_id), judgement, context.target)
    return MessageOutcome(answer=answer, notes=notes)


def _not_asked(
    request_id: Id, context: RequestContext, judgement: Judgement, why: str
) -> MessageOutcome:
    outcome = _denied(request_id, context, judgement)
    if not why:
        return outcome
    text = f"Refused by mcpwrap (needs approval, rule {judgement.rule}): {why}."
    answer = error_responses.not_approved(
        request_id, context.method, context.era, text, judgement.rule
    )
    about = subject(context.method, context.target, request_id)
    reason = shown(why, approval_wait.MAX_REASON_CHARS)
    note = JournalNote(NoteKind.DENIED, f"{about}: {reason}", judgement.rule, context.target)
    return MessageOutcome(answer=answer, notes=(note,))


def _token(request: Request) -> Id | None:
    meta = request.params.get("_meta")
    return as_id(meta.get("progressToken")) if isinstance(meta, dict) else None
