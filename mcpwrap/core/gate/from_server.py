"""Dispatcher of one message from the server: request, notification, response or malformed line.

A response, immediate or by a task, is checked for its outcome and its result, and is written to the
audit.
"""

from typing import assert_never

from msgspec.structs import replace

from mcpwrap.core.gate import decision_records, elicitation, error_responses
from mcpwrap.core.gate.call_outcomes import report_failure, report_result, report_task_state
from mcpwrap.core.gate.executed_code import RunReport, report_of_failure, report_of_result
from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.gate.previews import preview_requests
from mcpwrap.core.gate.results import judge_failure, judge_result
from mcpwrap.core.gate.session import (
    JournalNote,
    MessageOutcome,
    NoteKind,
    SessionState,
    blocked,
    cancel,
    is_refused,
    logged,
    pass_notification,
    subject,
)
from mcpwrap.core.policy.decision import Judgement, ResultJudgement
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.case_variants import has_case_variant
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Decoded,
    Failure,
    Id,
    Malformed,
    Notification,
    Request,
    Result,
    Sender,
    as_id,
    error_response,
    result_response,
    without,
)
from mcpwrap.core.protocol.methods import PolicyScope, ProtocolEra
from mcpwrap.core.protocol.strict_json import encode
from mcpwrap.core.text.sanitise import shown

MAX_WHY_CHARS = 200  # of the reason why a server ended, in the journal and the audit
_TOKEN = "progressToken"  # noqa: S105  # the name of a param


def judge(session: SessionState, decoded: Decoded) -> MessageOutcome:
    """Judge a message from the server; `_judge_response` decides on a response."""
    match decoded.message:
        case Request() as request:
            return _judge_request(session, request, decoded.json)
        case Notification() as notification:
            return _judge_notification(session, notification, decoded.json)
        case Result() | Failure() as answer:
            return _judge_response(session, answer, decoded.json)
        case _:
            assert_never(decoded.message)


def refuse(session: SessionState, malformed: Malformed) -> MessageOutcome:
    """Refuse a malformed line, or a malformed element of a batch.

    If it was to answer a request, the agent gets an error, so that it does not wait for ever.
    """
    note = JournalNote(NoteKind.MALFORMED, f"from the server: {malformed.reason}")
    given_up = None if malformed.id is None else fail_unreadable_response(session, malformed.id)
    outcome = MessageOutcome(given_up, notes=(note,))
    return decision_records.write_refusal(session, Sender.SERVER, outcome, malformed.id)


def fail_unreadable_response(session: SessionState, request_id: Id) -> bytes | None:
    """Return the error in the place of an unreadable response; None if it answers no request."""
    context = session.requests_from_agent.take(request_id)
    if context is None:
        return None
    report_failure(session, context)
    _allow_new_handshake(session, context)
    return error_response(request_id, INTERNAL_ERROR, "The server's response was malformed")


def server_ended(session: SessionState, why: str) -> list[MessageOutcome]:
    """Return an error response for each request that the server has not answered."""
    return [_unanswered(session, *taken, why) for taken in session.requests_from_agent.take_open()]


def _unanswered(
    session: SessionState, request_id: Id, context: RequestContext, why: str
) -> MessageOutcome:
    report_failure(session, context)
    text = f"{_about(context, request_id)}: missing, the server ended: {shown(why, MAX_WHY_CHARS)}"
    note = JournalNote(NoteKind.UNANSWERED, text, target=context.target)
    outcome = MessageOutcome(error_responses.server_ended(request_id, why), notes=(note,))
    return _record(session, context, request_id, outcome)


def _judge_request(session: SessionState, request: Request, json: bytes) -> MessageOutcome:
    outcome = _answer_or_forward(session, request, json)
    if not decision_records.write_request(session, Sender.SERVER, request, outcome):
        can_be_answered = outcome.answer is not None or outcome.forward is not None
        asked = RequestContext(request.method, "", ProtocolEra.HANDSHAKE)
        answer = error_responses.respond(session, request.id, asked, error_responses.unrecorded())
        return decision_records.unrecorded(outcome, answer=answer if can_be_answered else None)
    if outcome.forward is not None:
        session.requests_from_server.add(
            request.id, RequestContext(request.method, "", ProtocolEra.HANDSHAKE)
        )
    return outcome


def _answer_or_forward(session: SessionState, request: Request, json: bytes) -> MessageOutcome:
    about = subject(request.method, request_id=request.id)
    if not session.has_handshake:
        # It gets no response either: agents of 2026-07-28 send none, and before the agent's first
        # message the gate's response would be the one from which the server takes the era.
        reason = "a server must not send requests before a handshake"
        note = JournalNote(NoteKind.DROPPED, f"{about}: {reason}")
        return MessageOutcome(notes=(note,))
    way = methods.server_request(request.method)
    if way is None and session.names(request.method):
        way = PolicyScope.JUDGE
    if way is None or methods.is_notification(request.method):
        return _refuse(request, METHOD_NOT_FOUND, "Method not found", NoteKind.UNKNOWN)
    if refused := _check(session, request):
        return refused
    judgement = session.judge(way, request.method, request.params)
    if is_refused(judgement):
        asked = RequestContext(request.method, "", ProtocolEra.HANDSHAKE)
        refusal = error_responses.blocked(session, judgement)
        answer = error_responses.respond(session, request.id, asked, refusal)
        return MessageOutcome(answer=answer, notes=blocked(about, judgement))
    return MessageOutcome(forward=json, notes=logged(about, judgement.notes), rule=judgement.rule)


def _check(session: SessionState, request: Request) -> MessageOutcome | None:
    if request.id in session.requests_from_server or elicitation.may_be_ours(request.id):
        return _refuse(request, INVALID_REQUEST, "the id is in use", NoteKind.MALFORMED)
    if session.requests_from_server.is_full():
        reason = "too many requests have no response yet"
        return _refuse(request, error_responses.LIMITED, reason, NoteKind.LIMITED)
    if has_case_variant(request.params):
        reason = "a key of params is a variant spelling of an MCP key"
        return _refuse(request, INVALID_PARAMS, reason, NoteKind.MALFORMED)
    return None


def _refuse(request: Request, code: int, reason: str, kind: NoteKind) -> MessageOutcome:
    about = subject(request.method, request_id=request.id)
    answer = error_response(request.id, code, reason)
    return MessageOutcome(
        answer=answer, notes=(JournalNote(kind, f"from the server: {about}: {reason}"),)
    )


def _judge_notification(
    session: SessionState, notification: Notification, json: bytes
) -> MessageOutcome:
    if methods.is_request(notification.method):
        about = subject(notification.method)
        return refuse(session, Malformed(INVALID_REQUEST, f"{about}: a request must have an id"))
    match notification.method:
        case methods.CANCELLED:
            outcome = _cancel(session, notification, json)
        case methods.TASK_STATE | methods.TASK_STATUS:
            outcome = _judge_task_state(session, notification, json)
        case methods.LOG | methods.PROGRESS:
            outcome = _judge_text(session, notification, json)
        case method:
            way = methods.server_notification(method)
            outcome = pass_notification(session, notification, way, json)
    return decision_records.notified(session, Sender.SERVER, notification, outcome)


def _judge_text(session: SessionState, notification: Notification, json: bytes) -> MessageOutcome:
    """Judge a log message or progress as a result too: its text is the server's."""
    method, params = notification.method, notification.params
    passed = pass_notification(session, notification, methods.server_notification(method), json)
    if passed.forward is None:
        return passed
    texts = without(params, _TOKEN)  # by which the agent knows its request
    judged = session.policy.judge_result(method, "", texts)
    notes = (*passed.notes, *logged(subject(method), judged.notes))
    if judged.refusal is not None:
        return MessageOutcome(notes=(*notes, *blocked(subject(method), judged.refusal)))
    if judged.value is texts or not isinstance(judged.value, dict):
        return replace(passed, notes=notes)
    token = {_TOKEN: params[_TOKEN]} if _TOKEN in params else {}
    json = encode({"jsonrpc": "2.0", "method": method, "params": {**judged.value, **token}})
    return replace(passed, forward=json, notes=notes, is_changed=True)


def _cancel(session: SessionState, notification: Notification, json: bytes) -> MessageOutcome:
    """Handle `notifications/cancelled`, by which a server also ends a subscription."""
    cancelled = as_id(notification.params.get("requestId"))
    if cancelled is None:
        return MessageOutcome()
    if session.requests_from_server.find(cancelled) is not None:
        return cancel(session.requests_from_server, cancelled, json)
    context = session.requests_from_agent.find(cancelled)
    if context is None or context.method != methods.LISTEN:
        return MessageOutcome()
    return cancel(session.requests_from_agent, cancelled, json)


def _judge_task_state(
    session: SessionState, notification: Notification, json: bytes
) -> MessageOutcome:
    """Handle a notification about a task, which may contain its result.

    If the result is refused, the notification is not forwarded: a request for it gets the refusal.
    """
    task = notification.params.get("taskId")
    tool = session.tool_by_task.get(task) if isinstance(task, str) else None
    about = subject(notification.method, tool or "")
    if tool is None:
        note = JournalNote(NoteKind.DROPPED, f"from the server: {about}: the task is not known")
        return MessageOutcome(notes=(note,))
    params: Json = notification.params
    era = ProtocolEra.MODERN if notification.method == methods.TASK_STATE else ProtocolEra.HANDSHAKE
    context = RequestContext(methods.TASKS_GET, tool, era, str(task))
    report_task_state(session, context, params)
    judged = judge_result(session, context, params)
    notes = logged(about, judged.notes)
    if judged.refusal is not None:
        return MessageOutcome(notes=(*notes, *blocked(about, judged.refusal, tool)))
    is_changed = judged.value is not params
    if is_changed:
        json = encode({"jsonrpc": "2.0", "method": notification.method, "params": judged.value})
    passed = pass_notification(
        session, notification, methods.server_notification(notification.method), json
    )
    return MessageOutcome(
        passed.forward, notes=(*notes, *passed.notes), rule=passed.rule, is_changed=is_changed
    )


def _judge_response(session: SessionState, answer: Result | Failure, json: bytes) -> MessageOutcome:
    """Judge a response; return its outcome for the agent."""
    if preview_requests.may_be_ours(answer.id):
        preview_requests.take(session, answer)
        return MessageOutcome()
    context = session.requests_from_agent.take(answer.id)
    if context is None:
        about = subject("response", request_id=answer.id)
        reason = "no open request has this id"
        note = JournalNote(NoteKind.DROPPED, f"from the server: {about}: {reason}")
        return decision_records.write_refusal(
            session, Sender.SERVER, MessageOutcome(notes=(note,)), answer.id
        )
    match answer:
        case Result():
            outcome = _judge_result(session, context, answer, json)
        case Failure():
            outcome = _judge_failure(session, context, answer, json)
        case _:
            assert_never(answer)
    if session.executes:
        outcome = replace(outcome, run=_report_run(context, answer))
    return _record(session, context, answer.id, outcome)


def _report_run(context: RequestContext, answer: Result | Failure) -> RunReport | None:
    if isinstance(answer, Result):
        return report_of_result(context.method, answer.result)
    return report_of_failure(context.method)


def _judge_result(
    session: SessionState, context: RequestContext, answer: Result, json: bytes
) -> MessageOutcome:
    value = answer.result
    report_result(session, context, value)
    judged = judge_result(session, context, value)
    if judged.refusal is not None:
        return _deny(session, (context, answer.id), judged.refusal, judged.notes)
    passed = _advised(session, context.method, judged.value)
    is_changed = passed is not value
    forward = result_response(answer.id, passed) if is_changed else json
    notes = _notes(_about(context, answer.id), judged) if is_changed or judged.notes else ()
    return MessageOutcome(forward, notes=notes, is_changed=is_changed)


def _advised(session: SessionState, method: str, value: Json) -> Json:
    """Return the server's description of itself with the advice after its instructions."""
    is_description = method in {methods.INITIALIZE, methods.DISCOVER}
    if not session.advice or not is_description or not isinstance(value, dict):
        return value
    given = value.get("instructions")
    texts = [given, session.advice] if isinstance(given, str) and given else [session.advice]
    return {**value, "instructions": "\n\n".join(texts)}


def _notes(about: str, judged: ResultJudgement) -> tuple[JournalNote, ...]:
    notes = logged(about, judged.notes)
    if not judged.left_out:
        return notes
    left_out = f"left out {judged.left_out}"
    return (JournalNote(NoteKind.LOGGED, f"{about}: {left_out}", left_out), *notes)


def _judge_failure(
    session: SessionState, context: RequestContext, answer: Failure, json: bytes
) -> MessageOutcome:
    report_failure(session, context, answer.error)
    _allow_new_handshake(session, context)
    judged = judge_failure(session, context, answer.error)
    if judged.refusal is not None:
        return _deny(session, (context, answer.id), judged.refusal, judged.notes)
    is_changed = judged.value is not answer.error
    if is_changed:
        json = encode({"jsonrpc": "2.0", "id": answer.id, "error": judged.value})
    notes = logged(_about(context, answer.id), judged.notes)
    return MessageOutcome(json, notes=notes, is_changed=is_changed)


def _allow_new_handshake(session: SessionState, context: RequestContext) -> None:
    """Allow another handshake, with another revision, after one that failed."""
    if context.method == methods.INITIALIZE:
        session.has_handshake = False


def _deny(
    session: SessionState,
    answered: tuple[RequestContext, Id],
    refusal: Judgement,
    notes: tuple[str, ...],
) -> MessageOutcome:
    context, request_id = answered
    about = _about(context, request_id)
    refused = error_responses.result_blocked(session, refusal)
    response = error_responses.respond(session, request_id, context, refused)
    all_notes = (*logged(about, notes), *blocked(about, refusal, context.target))
    return MessageOutcome(response, notes=all_notes)


def _record(
    session: SessionState, context: RequestContext, request_id: Id, outcome: MessageOutcome
) -> MessageOutcome:
    if decision_records.write_answer(session, context, request_id, outcome):
        return outcome
    refusal = error_responses.unrecorded()
    response = error_responses.respond(session, request_id, context, refusal)
    return decision_records.unrecorded(outcome, forward=response)


def _about(context: RequestContext, request_id: Id) -> str:
    return f"the response to {subject(context.method, context.target, request_id)}"
