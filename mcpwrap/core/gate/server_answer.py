"""Checks of one response from the server, immediate or by a task: outcome, result, audit."""

from typing import assert_never

from mcpwrap.core.gate import decision_records, error_responses
from mcpwrap.core.gate.call_outcomes import report_failure, report_result, report_task_state
from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.gate.results import judge_failure, judge_result
from mcpwrap.core.gate.session import (
    JournalNote,
    MessageOutcome,
    NoteKind,
    SessionState,
    blocked,
    logged,
    pass_notification,
    subject,
)
from mcpwrap.core.policy.decision import Judgement, ResultJudgement
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import (
    INTERNAL_ERROR,
    Failure,
    Id,
    Notification,
    Result,
    Sender,
    error_response,
    result_response,
)
from mcpwrap.core.protocol.methods import ProtocolEra
from mcpwrap.core.protocol.strict_json import encode
from mcpwrap.core.text.sanitise import shown

MAX_WHY_CHARS = 200  # of how a server ended, in the journal and the audit


def judge_response(session: SessionState, answer: Result | Failure, json: bytes) -> MessageOutcome:
    """Return what the agent gets."""
    asked = session.requests_from_agent.take(answer.id)
    if asked is None:
        about = subject("answer", request_id=answer.id)
        note = JournalNote(NoteKind.DROPPED, f"from the server: {about}: nothing was asked")
        return decision_records.write_refusal(
            session, Sender.SERVER, MessageOutcome(notes=(note,)), answer.id
        )
    match answer:
        case Result():
            return _judge_result(session, asked, answer, json)
        case Failure():
            return _judge_failure(session, asked, answer, json)
        case _:
            assert_never(answer)


def _judge_result(
    session: SessionState, asked: RequestContext, answer: Result, json: bytes
) -> MessageOutcome:
    value = answer.result
    report_result(session, asked, value)
    judged = judge_result(session, asked, value)
    if judged.refusal is not None:
        return _deny(session, asked, answer.id, judged.refusal, judged.notes)
    is_changed = judged.value is not value
    forward = result_response(answer.id, judged.value) if is_changed else json
    notes = _notes(_about(asked, answer.id), judged) if is_changed or judged.notes else ()
    outcome = MessageOutcome(forward, notes=notes, is_changed=is_changed)
    return _write_down(session, asked, answer.id, outcome)


def _notes(about: str, judged: ResultJudgement) -> tuple[JournalNote, ...]:
    notes = logged(about, judged.notes)
    if not judged.left_out:
        return notes
    left_out = f"left out {judged.left_out}"
    return (JournalNote(NoteKind.LOGGED, f"{about}: {left_out}", left_out), *notes)


def _judge_failure(
    session: SessionState, asked: RequestContext, answer: Failure, json: bytes
) -> MessageOutcome:
    report_failure(session, asked)
    _let_it_be_initialized_again(session, asked)
    judged = judge_failure(session, asked, answer.error)
    if judged.refusal is not None:
        return _deny(session, asked, answer.id, judged.refusal, judged.notes)
    is_changed = judged.value is not answer.error
    if is_changed:
        json = encode({"jsonrpc": "2.0", "id": answer.id, "error": judged.value})
    notes = logged(_about(asked, answer.id), judged.notes)
    outcome = MessageOutcome(json, notes=notes, is_changed=is_changed)
    return _write_down(session, asked, answer.id, outcome)


def _let_it_be_initialized_again(session: SessionState, asked: RequestContext) -> None:
    """Let the agent try another revision, after a handshake that failed."""
    if asked.method == methods.INITIALIZE:
        session.has_handshake = False


def _deny(
    session: SessionState,
    asked: RequestContext,
    request_id: Id,
    refusal: Judgement,
    notes: tuple[str, ...],
) -> MessageOutcome:
    about = _about(asked, request_id)
    told = error_responses.denied(request_id, asked.method, asked.era, refusal)
    all_notes = (*logged(about, notes), *blocked(about, refusal, asked.target))
    return _write_down(session, asked, request_id, MessageOutcome(told, notes=all_notes))


def _write_down(
    session: SessionState, asked: RequestContext, request_id: Id, outcome: MessageOutcome
) -> MessageOutcome:
    if decision_records.write_answer(session, asked, request_id, outcome):
        return outcome
    refusal = error_responses.unrecorded(request_id, asked.method, asked.era)
    return decision_records.unrecorded(outcome, forward=refusal)


def _about(asked: RequestContext, request_id: Id) -> str:
    return f"the answer to {subject(asked.method, asked.target, request_id)}"


def give_up(session: SessionState, request_id: Id) -> bytes | None:
    """Return what the agent gets for an answer that cannot be read; None if it asked nothing."""
    asked = session.requests_from_agent.take(request_id)
    if asked is None:
        return None
    report_failure(session, asked)
    _let_it_be_initialized_again(session, asked)
    return error_response(request_id, INTERNAL_ERROR, "The server's answer was malformed")


def server_ended(session: SessionState, why: str) -> list[MessageOutcome]:
    """Return what the agent gets for each request that the server has left open."""
    return [_unanswered(session, *taken, why) for taken in session.requests_from_agent.take_open()]


def _unanswered(
    session: SessionState, request_id: Id, asked: RequestContext, why: str
) -> MessageOutcome:
    report_failure(session, asked)
    text = f"{_about(asked, request_id)}: none, the server ended: {shown(why, MAX_WHY_CHARS)}"
    note = JournalNote(NoteKind.UNANSWERED, text, target=asked.target)
    outcome = MessageOutcome(error_responses.server_ended(request_id, why), notes=(note,))
    return _write_down(session, asked, request_id, outcome)


def judge_task_state(
    session: SessionState, notification: Notification, json: bytes
) -> MessageOutcome:
    """Handle a notification about a task, which may contain its result.

    If the result is refused, the notification is not forwarded: a request for it gets the refusal.
    """
    task = notification.params.get("taskId")
    tool = session.tool_by_task.get(task) if isinstance(task, str) else None
    about = subject(notification.method, tool or "")
    if tool is None:
        note = JournalNote(NoteKind.DROPPED, f"from the server: {about}: of no task that is known")
        return MessageOutcome(notes=(note,))
    params: Json = notification.params
    era = ProtocolEra.MODERN if notification.method == methods.TASK_STATE else ProtocolEra.HANDSHAKE
    asked = RequestContext(methods.TASKS_GET, tool, era, str(task))
    report_task_state(session, asked, params)
    judged = judge_result(session, asked, params)
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
