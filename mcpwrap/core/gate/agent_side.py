"""Dispatcher of one message from the agent: request, response, notification or malformed line."""

from typing import assert_never

from mcpwrap.core.gate import (
    approval_wait,
    decision_records,
    elicitation,
    from_agent,
)
from mcpwrap.core.gate.session import (
    JournalNote,
    MessageOutcome,
    NoteKind,
    SessionState,
    cancel,
    pass_notification,
    subject,
)
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.case_variants import has_case_variant
from mcpwrap.core.protocol.jsonrpc import (
    INVALID_REQUEST,
    Decoded,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    Sender,
    as_id,
    error_response,
)


def judge(session: SessionState, decoded: Decoded) -> MessageOutcome:
    """Return what becomes of a message."""
    match decoded.message:
        case Request() as request:
            return from_agent.judge_request(session, request, decoded.json)
        case Result(id=answered) | Failure(id=answered) if session.pending_approvals and _answers(
            session, decoded.message
        ):
            return MessageOutcome()
        case Notification() as notification:
            return _judge_notification(session, notification, decoded.json)
        case Result(id=answered) | Failure(id=answered):
            if session.requests_from_server.take(answered) is not None:
                return MessageOutcome(forward=decoded.json)
            about = subject("answer", request_id=answered)
            note = JournalNote(NoteKind.DROPPED, f"{about}: nothing was asked")
            return decision_records.write_refusal(
                session, Sender.AGENT, MessageOutcome(notes=(note,)), answered
            )
        case _:
            assert_never(decoded.message)


def refuse(session: SessionState, malformed: Malformed) -> MessageOutcome:
    """Return what becomes of a line, or an element of a batch, that is no message."""
    answer = error_response(malformed.id, malformed.code, malformed.reason)
    outcome = MessageOutcome(
        answer=answer, notes=(JournalNote(NoteKind.MALFORMED, malformed.reason),)
    )
    return decision_records.write_refusal(session, Sender.AGENT, outcome, malformed.id)


def _judge_notification(
    session: SessionState, notification: Notification, json: bytes
) -> MessageOutcome:
    if methods.is_request(notification.method):
        about = subject(notification.method)
        return refuse(session, Malformed(INVALID_REQUEST, f"{about}: a request has an id"))
    if has_case_variant(notification.params):
        about = subject(notification.method)
        reason = "a key of params is in another spelling than MCP has it in"
        outcome = MessageOutcome(notes=(JournalNote(NoteKind.MALFORMED, f"{about}: {reason}"),))
    elif notification.method == methods.CANCELLED:
        outcome = _cancel(session, notification, json)
    else:
        way = methods.agent_notification(notification.method)
        outcome = pass_notification(session, notification, way, json)
    return decision_records.notified(session, Sender.AGENT, notification, outcome)


def _cancel(session: SessionState, notification: Notification, json: bytes) -> MessageOutcome:
    """Pass on that an answer is no longer wanted. What we refused has had its answer already."""
    cancelled = as_id(notification.params.get("requestId"))
    if cancelled is None:
        return MessageOutcome()
    if session.pending_approvals and (withdrawn := approval_wait.cancel(session, cancelled)):
        return withdrawn
    if session.requests_from_agent.find(cancelled) is None:
        return MessageOutcome()
    return cancel(session.requests_from_agent, cancelled, json)


def _answers(session: SessionState, message: Result | Failure) -> bool:
    """Take the response to an elicitation of ours; say whether it was one."""
    hold = session.pending_approvals.by_window(message.id)
    if hold is None:
        return False
    approves = elicitation.answer(message.result) if isinstance(message, Result) else None
    if approves is not None:
        session.approvals.answer(hold.number, approves=approves)
    hold.window = ""  # it is closed
    return True
