"""Dispatcher of one message from the agent: request, response, notification or malformed line.

A request is checked for validity, policy, rate limits and approval, and is written to the audit.
"""

from typing import assert_never

from msgspec.structs import replace

from mcpwrap.core.gate import (
    approval_decision,
    approval_wait,
    decision_records,
    elicitation,
    error_responses,
)
from mcpwrap.core.gate.call_outcomes import digest_of
from mcpwrap.core.gate.in_flight import MAX_CURSOR_CHARS, MAX_TARGET_CHARS, RequestContext
from mcpwrap.core.gate.pending_approvals import StateError
from mcpwrap.core.gate.previews import preview_requests
from mcpwrap.core.gate.session import (
    JournalNote,
    MessageOutcome,
    NoteKind,
    SessionState,
    blocked,
    cancel,
    logged,
    pass_notification,
    subject,
)
from mcpwrap.core.policy.decision import Decision, Judgement
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.case_variants import has_case_variant
from mcpwrap.core.protocol.confusable_names import why_deceptive
from mcpwrap.core.protocol.json_keys import has_control_characters
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
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
from mcpwrap.core.protocol.methods import PolicyScope
from mcpwrap.core.protocol.strict_json import encode, encode_sorted
from mcpwrap.core.text.sanitise import shown

_NO_CURSOR = "\0"  # in the place of a value that is not a string


def judge(session: SessionState, decoded: Decoded) -> MessageOutcome:
    """Judge a message from the agent; `_judge_request` decides on a request."""
    match decoded.message:
        case Request() as request:
            return _judge_request(session, request, decoded.json)
        case Result(id=answered) | Failure(id=answered) if (
            session.pending_approvals and _take_elicitation_answer(session, decoded.message)
        ):
            return MessageOutcome()
        case Notification() as notification:
            return _judge_notification(session, notification, decoded.json)
        case Result(id=answered) | Failure(id=answered):
            if session.requests_from_server.take(answered) is not None:
                return MessageOutcome(forward=decoded.json)
            about = subject("response", request_id=answered)
            note = JournalNote(NoteKind.DROPPED, f"{about}: no open request has this id")
            return decision_records.write_refusal(
                session, Sender.AGENT, MessageOutcome(notes=(note,)), answered
            )
        case _:
            assert_never(decoded.message)


def refuse(session: SessionState, malformed: Malformed) -> MessageOutcome:
    """Refuse a malformed line, or a malformed element of a batch."""
    answer = error_response(malformed.id, malformed.code, malformed.reason)
    outcome = MessageOutcome(
        answer=answer, notes=(JournalNote(NoteKind.MALFORMED, malformed.reason),)
    )
    return decision_records.write_refusal(session, Sender.AGENT, outcome, malformed.id)


class _RefusedError(Exception):
    """Refusal of a request; `outcome` holds the response to the agent."""

    def __init__(self, outcome: MessageOutcome) -> None:
        super().__init__()
        self.outcome = outcome


def _judge_request(session: SessionState, request: Request, json: bytes) -> MessageOutcome:
    """Judge a request, and add it to the requests in flight if it is forwarded."""
    try:
        context, outcome = _forward(session, request, json)
    except _RefusedError as error:
        context, outcome = None, error.outcome
    if not decision_records.write_request(session, Sender.AGENT, request, outcome):
        if outcome.held is not None:
            session.approvals.withdraw(outcome.held.number, will_resume=False)
        asked = RequestContext(request.method, "", methods.era_of(request.params))
        answer = error_responses.respond(session, request.id, asked, error_responses.unrecorded())
        return decision_records.unrecorded(outcome, answer=answer)
    if outcome.held is not None:
        session.pending_approvals.add(outcome.held)
    if context is None or outcome.forward is None:
        return outcome
    session.requests_from_agent.add(request.id, context)
    if request.method == methods.SET_LOG_LEVEL:
        session.log_level = str(request.params.get("level"))
    if request.method == methods.INITIALIZE:
        session.has_handshake = True
        session.can_elicit = elicitation.can_elicit(request.params)
        session.client = elicitation.client_of(request.params)
    return outcome


def _forward(
    session: SessionState, request: Request, json: bytes
) -> tuple[RequestContext, MessageOutcome]:
    revision = methods.revision_of(request.params)
    era = methods.ProtocolEra.HANDSHAKE if revision is None else methods.ProtocolEra.MODERN
    way = _find_scope(session, request, era)
    if revision is not None or request.method == methods.INITIALIZE:
        _check_revision(session, request, revision)
    _check_id(session, request)
    _check_params(request)
    target = _find_target(session, request)
    sent = request
    if "requestState" in request.params:
        request, json = _resume(session, request, json)
    context = RequestContext(
        request.method,
        target,
        era,
        _task(sent),
        revision,
        _cursor(sent),
        _call_digest(session, request, target),
        methods.listens_to(sent.params) if sent.method == methods.LISTEN else frozenset(),
        request is not sent,
    )
    judgement = _apply_policy(session, request, context, way)
    notes = logged(_about(request, context), judgement.notes) if judgement.notes else ()
    # Rules of the policy come first.
    unaccepted = approval_decision.refuse_unaccepted(session, request, context)
    if unaccepted is not None:
        raise _RefusedError(replace(unaccepted, notes=(*notes, *unaccepted.notes)))
    if request.method == methods.TOOLS_CALL:
        _apply_limits(session, request, context, notes)
    if judgement.decision is Decision.NEEDS_APPROVAL:
        outcome = approval_decision.request_approval(
            session, request, context, (way, judgement), json
        )
        return context, replace(outcome, notes=(*notes, *outcome.notes))
    return context, MessageOutcome(forward=json, notes=notes, rule=judgement.rule)


def _resume(session: SessionState, request: Request, json: bytes) -> tuple[Request, bytes]:
    """Restore a suspended request, if it has the `requestState` that mcpwrap gave the agent."""
    try:
        restored = approval_wait.restore_params(session, request)
    except StateError as error:
        raise _bad_params(request, str(error)) from error
    if restored is request:
        return request, json
    message: Json = {
        "jsonrpc": "2.0", "id": request.id, "method": request.method, "params": restored.params
    }  # fmt: skip
    return restored, encode(message)


def _refuse_request(request: Request, code: int, reason: str, kind: NoteKind) -> MessageOutcome:
    """Return an outcome whose response is a JSON-RPC error."""
    about = subject(request.method, request_id=request.id)
    answer = error_response(request.id, code, reason)
    return MessageOutcome(answer=answer, notes=(JournalNote(kind, f"{about}: {reason}"),))


def _find_scope(session: SessionState, request: Request, era: methods.ProtocolEra) -> PolicyScope:
    if methods.is_notification(request.method):
        reason = "a notification must not have an id"
        raise _RefusedError(_refuse_request(request, INVALID_REQUEST, reason, NoteKind.MALFORMED))
    way = methods.agent_request(request.method, era)
    if way is not None:
        return way
    if session.names(request.method):
        return PolicyScope.JUDGE
    raise _RefusedError(
        _refuse_request(request, METHOD_NOT_FOUND, "Method not found", NoteKind.UNKNOWN)
    )


def _check_revision(session: SessionState, request: Request, revision: str | None) -> None:
    """Refuse a second handshake, and a revision other than the one that a handshake agreed on.

    Servers keep the revision of a connection, and so do the rules for the content of a result.
    Since 2026-07-28 each request has its own, and the server reports which revisions it knows.
    """
    reason = ""
    if request.method == methods.INITIALIZE:
        if session.has_handshake or (session.version and revision is None):
            reason = "the session is already initialized; open a new connection for a new session"
    elif session.has_handshake and session.version and revision != session.version:
        version = shown(session.version)
        reason = f"the session uses MCP {version}; open a new connection for another revision"
    if reason:
        raise _RefusedError(_refuse_request(request, INVALID_REQUEST, reason, NoteKind.MALFORMED))


def _check_id(session: SessionState, request: Request) -> None:
    if preview_requests.may_be_ours(request.id):
        reason = "ids that begin with mcpwrap-preview- are the gate's own"
        raise _RefusedError(_refuse_request(request, INVALID_REQUEST, reason, NoteKind.MALFORMED))
    if request.id in session.requests_from_agent or request.id in session.pending_approvals:
        reason = "the id is in use"  # its response would be judged as the other's
        raise _RefusedError(_refuse_request(request, INVALID_REQUEST, reason, NoteKind.MALFORMED))
    if session.requests_from_agent.is_full():
        reason = "too many requests have no response yet"
        raise _RefusedError(
            _refuse_request(request, error_responses.LIMITED, reason, NoteKind.LIMITED)
        )


def _check_params(request: Request) -> None:
    """Refuse params that a server may read otherwise than the gate, or that deceive a person."""
    params = request.params
    if has_case_variant(params):
        raise _bad_params(request, "a key of params is a variant spelling of an MCP key")
    if "_meta" in params and methods.has_odd_envelope(params):
        raise _bad_params(request, "the revision in _meta must be a string, under MCP's own key")
    if why := _why_deceptive(params):
        raise _bad_params(request, f"the name or URI has {why}")


def _find_target(session: SessionState, request: Request) -> str:
    """Return the target of the request, for a task its tool; "" if its method has no target."""
    target_key = methods.TARGET_KEY.get(request.method)
    if target_key is None:
        return ""
    if not isinstance(request.params.get("arguments", {}), dict):
        raise _bad_params(request, "arguments must be an object")
    target = request.params.get(target_key)
    if not isinstance(target, str) or len(target) > MAX_TARGET_CHARS:
        reason = f"{target_key} must be a string of at most {MAX_TARGET_CHARS} characters"
        raise _bad_params(request, reason)
    if request.method not in methods.TASK_RESULTS:
        return target
    tool = session.tool_by_task.get(target)
    if tool is None:  # the rules for its result are not known
        raise _bad_params(request, "Unknown task")
    return tool


def _why_deceptive(params: dict[str, Json]) -> str:
    """Return why people or servers may mistake a name or URI for another; "" if they cannot."""
    name = params.get("name")
    if isinstance(name, str) and (why := why_deceptive(name)):
        return why
    if "uri" in params or "ref" in params:
        uri, ref = params.get("uri"), params.get("ref")
        if isinstance(uri, str) and has_control_characters(uri):
            return "a control character"
        if isinstance(ref, dict):  # of a completion
            return _why_deceptive(ref)
    return ""


def _task(request: Request) -> str:
    return str(request.params["taskId"]) if request.method in methods.TASK_RESULTS else ""


def _cursor(request: Request) -> str:
    """Return the cursor of a list's page; "" for the first page, also where it is null."""
    cursor = request.params.get("cursor")
    if cursor is None:
        return ""
    return cursor[: MAX_CURSOR_CHARS + 1] if isinstance(cursor, str) else _NO_CURSOR


def _bad_params(request: Request, reason: str) -> _RefusedError:
    return _RefusedError(_refuse_request(request, INVALID_PARAMS, reason, NoteKind.MALFORMED))


def _apply_policy(
    session: SessionState, request: Request, context: RequestContext, way: PolicyScope
) -> Judgement:
    if context.method == methods.TOOLS_CALL and session.policy.hides(context.target):
        # The message of the official SDKs for a tool that a server does not have.
        answer = error_response(request.id, INVALID_PARAMS, f"Unknown tool: {context.target}")
        note = JournalNote(
            NoteKind.BLOCKED, f"{_about(request, context)}: hidden", target=context.target
        )
        raise _RefusedError(MessageOutcome(answer=answer, notes=(note,)))
    judgement = session.judge(way, request.method, request.params)
    if judgement.decision is Decision.BLOCK:
        refusal = error_responses.blocked(session, judgement)
        answer = error_responses.respond(session, request.id, context, refusal)
        notes = blocked(_about(request, context), judgement, context.target)
        raise _RefusedError(MessageOutcome(answer=answer, notes=notes))
    return judgement


def _apply_limits(
    session: SessionState, request: Request, context: RequestContext, notes: tuple[JournalNote, ...]
) -> None:
    exceeded = session.limits.ask(context.target, context.call_digest)
    if exceeded is not None:
        refusal = error_responses.limited(session, exceeded)
        answer = error_responses.respond(session, request.id, context, refusal)
        why = f"{_about(request, context)}: {error_responses.why_limited(exceeded)}"
        note = JournalNote(NoteKind.LIMITED, why, target=context.target)
        raise _RefusedError(MessageOutcome(answer=answer, notes=(*notes, note)))


def _call_digest(session: SessionState, request: Request, tool: str) -> bytes:
    if request.method != methods.TOOLS_CALL or not session.limits.counts(tool):
        return b""
    call: Json = [tool, request.params.get("arguments", {})]
    return digest_of(encode_sorted(call))


def _about(request: Request, context: RequestContext) -> str:
    return subject(context.method, context.target, request.id)


def _judge_notification(
    session: SessionState, notification: Notification, json: bytes
) -> MessageOutcome:
    if methods.is_request(notification.method):
        about = subject(notification.method)
        return refuse(session, Malformed(INVALID_REQUEST, f"{about}: a request must have an id"))
    if has_case_variant(notification.params):
        about = subject(notification.method)
        reason = "a key of params is a variant spelling of an MCP key"
        outcome = MessageOutcome(notes=(JournalNote(NoteKind.MALFORMED, f"{about}: {reason}"),))
    elif notification.method == methods.CANCELLED:
        outcome = _cancel(session, notification, json)
    else:
        way = methods.agent_notification(notification.method)
        outcome = pass_notification(session, notification, way, json)
    return decision_records.notified(session, Sender.AGENT, notification, outcome)


def _cancel(session: SessionState, notification: Notification, json: bytes) -> MessageOutcome:
    """Handle `notifications/cancelled`. A request that the gate refused has its response."""
    cancelled = as_id(notification.params.get("requestId"))
    if cancelled is None:
        return MessageOutcome()
    if session.pending_approvals and (withdrawn := approval_wait.cancel(session, cancelled)):
        return withdrawn
    if session.requests_from_agent.find(cancelled) is None:
        return MessageOutcome()
    return cancel(session.requests_from_agent, cancelled, json)


def _take_elicitation_answer(session: SessionState, message: Result | Failure) -> bool:
    """Take the response to an elicitation by the gate; return whether it is one."""
    hold = session.pending_approvals.by_window(message.id)
    if hold is None:
        return False
    result = message.result if isinstance(message, Result) else None
    hold.window = ""  # it is closed
    approval_wait.take_form_answer(session, hold, elicitation.answer(result))
    return True
