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
    asked: RequestContext,
    judged: tuple[PolicyScope, Judgement],
    json: bytes,
) -> MessageOutcome:
    """Ask a person, and return what becomes of the request until there is an answer."""
    way, judgement = judged
    if session.pending_approvals.is_full():
        why = f"{MAX_HELD} requests of this session wait for a person already"
        return _not_asked(request.id, asked, judgement, why)
    number = session.pending_approvals.next_number()
    wanted = _approval_request(session, request, asked, judgement)
    answer = session.approvals.ask(number, wanted)
    about = subject(asked.method, asked.target, request.id)
    match answer:
        case Approved(id_, digest, by):
            return MessageOutcome(
                forward=json, rule=judgement.rule, approval=Approval(id_, digest, by)
            )
        case ApprovalUnavailable(why):
            return _not_asked(request.id, asked, judgement, why)
        case AwaitingApproval(id_, digest):
            by_rule = f"waits for approval {id_}, rule {judgement.rule}"
            note = JournalNote(NoteKind.HELD, f"{about}: {by_rule}", judgement.rule, asked.target)
            hold = PendingApproval(
                number=number,
                request=request,
                json=json,
                asked=asked,
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
    session: SessionState, request: Request, asked: RequestContext, judgement: Judgement
) -> ApprovalRequest:
    return ApprovalRequest(
        method=asked.method,
        target=asked.target,
        definition=_definition(session, asked),
        params=without(request.params, "_meta"),
        rule=judgement.rule,
        message=judgement.message,
        expires_s=session.policy.times.expires_s,
    )


def _definition(session: SessionState, asked: RequestContext) -> str:
    return session.definition_of(asked.target) if asked.method == TOOLS_CALL else ""


def handle_outcome(session: SessionState, news: ApprovalOutcome) -> list[MessageOutcome]:
    """Return what becomes of a request that was held; nothing, if it waits no more."""
    hold = session.pending_approvals.take(news.hold)
    if hold is None:
        return []
    closing = approval_wait.close_elicitation(hold)
    return [*closing, *_go_on(session, hold, _decided(session, hold, news))]


def _decided(session: SessionState, hold: PendingApproval, news: ApprovalOutcome) -> MessageOutcome:
    match news.what:
        case "approved":
            return _approved(session, hold, news)
        case "denied":
            because = f": {news.reason}" if news.reason else ""
            return _refused(hold, NoteKind.DENIED, f"denied by {news.by}{because}", news.by)
        case "expired":
            return _refused(hold, NoteKind.EXPIRED, "nobody answered in time")
        case "void":
            return _judged_anew(session, hold)
        case _:
            assert_never(news.what)


def _approved(
    session: SessionState, hold: PendingApproval, news: ApprovalOutcome
) -> MessageOutcome:
    """Let it go on, if the policy still would, and the tool is what the person was told it is."""
    if _definition(session, hold.asked) != hold.definition:
        return _judged_anew(session, hold)
    judgement = session.judge(hold.way, hold.asked.method, hold.request.params)
    if judgement.decision is Decision.BLOCK:
        return _denied(hold.request.id, hold.asked, judgement)
    approval = Approval(hold.approval.id, hold.approval.shown, news.by)
    return MessageOutcome(hold.json, rule=judgement.rule, approval=approval)


def _judged_anew(session: SessionState, hold: PendingApproval) -> MessageOutcome:
    """Judge it as if it had just come: what was asked is not what would run by now.

    The agent waits for as long as before in all.
    """
    judgement = session.judge(hold.way, hold.asked.method, hold.request.params)
    match judgement.decision:
        case Decision.ALLOW:
            return MessageOutcome(hold.json, rule=judgement.rule)
        case Decision.BLOCK:
            return _denied(hold.request.id, hold.asked, judgement)
        case Decision.NEEDS_APPROVAL:
            asked = request_approval(
                session, hold.request, hold.asked, (hold.way, judgement), hold.json
            )
            if asked.held is not None:
                asked.held.continue_from(hold)
            return asked
        case _:
            assert_never(judgement.decision)


def _go_on(
    session: SessionState, hold: PendingApproval, outcome: MessageOutcome
) -> list[MessageOutcome]:
    """Write it down, and remember what is waited for from then on: an answer, or a person."""
    done = approval_wait.write(session, hold, outcome)
    if done.forward is not None:
        session.requests_from_agent.add(hold.request.id, hold.asked)
    if done.held is None:
        return [done]
    session.pending_approvals.add(done.held)
    return [done, *approval_wait.begin(session, done.held)]


def _refused(hold: PendingApproval, kind: NoteKind, why: str, by: str = "") -> MessageOutcome:
    asked, rule = hold.asked, hold.judgement.rule
    text = f"Refused by mcpwrap ({why}). Approval {hold.approval.id}, rule {rule}."
    answer = error_responses.not_approved(hold.request.id, asked.method, asked.era, text, rule)
    approval = Approval(hold.approval.id, hold.approval.shown, by)
    return MessageOutcome(
        answer=answer, notes=(approval_wait.note(hold, kind, why),), approval=approval
    )


def _denied(request_id: Id, asked: RequestContext, judgement: Judgement) -> MessageOutcome:
    answer = error_responses.denied(request_id, asked.method, asked.era, judgement)
    notes = blocked(subject(asked.method, asked.target, request_id), judgement, asked.target)
    return MessageOutcome(answer=answer, notes=notes)


def _not_asked(
    request_id: Id, asked: RequestContext, judgement: Judgement, why: str
) -> MessageOutcome:
    outcome = _denied(request_id, asked, judgement)
    if not why:
        return outcome
    text = f"Refused by mcpwrap (needs approval, rule {judgement.rule}): {why}."
    answer = error_responses.not_approved(request_id, asked.method, asked.era, text, judgement.rule)
    about = subject(asked.method, asked.target, request_id)
    reason = shown(why, approval_wait.MAX_REASON_CHARS)
    note = JournalNote(NoteKind.DENIED, f"{about}: {reason}", judgement.rule, asked.target)
    return MessageOutcome(answer=answer, notes=(note,))


def _token(request: Request) -> Id | None:
    meta = request.params.get("_meta")
    return as_id(meta.get("progressToken")) if isinstance(meta, dict) else None
