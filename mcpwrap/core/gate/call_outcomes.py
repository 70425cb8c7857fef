"""Call outcomes for the limits: each reported once, at the response or the task's end."""

from mcpwrap.core.gate.in_flight import MAX_TARGET_CHARS, RequestContext
from mcpwrap.core.gate.session import SessionState
from mcpwrap.core.policy.decision import CallOutcome
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.strict_json import encode

DIGEST_BYTES = 8


def digest_of(encoded: bytes) -> bytes:
    """Return a digest by which the limits compare calls, or answers.

    Python's own hash is a keyed one, SipHash, and costs a sixth of one of hashlib. Its key is this
    process's and that of its forks: the monitor compares digests of sessions, which are its forks.
    """
    return hash(encoded).to_bytes(DIGEST_BYTES, "big", signed=True)


def report_result(session: SessionState, context: RequestContext, value: Json) -> None:
    """Report the outcome of a call, from the result of a request."""
    match context.method:
        case methods.TOOLS_CALL:
            if not _became_a_task(session, context, value):
                failed = _is_error(value)
                _report(session, context.target, context.call_digest, value, failed=failed)
        case methods.TASKS_RESULT:
            _report_task(session, context, value, failed=_is_error(value))
        case methods.TASKS_GET:
            report_task_state(session, context, value)
        case _:
            pass


def report_task_state(session: SessionState, context: RequestContext, state: Json) -> None:
    """Report the outcome of a task from its state; a cancelled one has neither outcome."""
    match state:
        case {"error": error}:
            _report_task(session, context, error, failed=True)
        case {"status": "failed"}:
            _report_task(session, context, "failed", failed=True)
        case {"result": result}:
            _report_task(session, context, result, failed=_is_error(result))
        case _:
            pass


def report_failure(session: SessionState, context: RequestContext, error: Json = "failed") -> None:
    """Report the failure of a call: an error, or a response that is missing or cannot be read."""
    match context.method:
        case methods.TOOLS_CALL:
            _report(session, context.target, context.call_digest, error, failed=True)
        case methods.TASKS_RESULT:
            _report_task(session, context, error, failed=True)
        case _:
            pass


def _report(
    session: SessionState, tool: str, call_digest: bytes, answer: Json, *, failed: bool
) -> None:
    answer_digest = b""
    if call_digest and session.limits.needs_answer(tool, call_digest):
        answer_digest = _answer_digest(answer)
    session.limits.report(tool, CallOutcome(failed, call_digest, answer_digest))


def _answer_digest(answer: Json) -> bytes:
    """Return the digest of a result or an error. `_meta` is about one message, not its content."""
    if isinstance(answer, dict) and "_meta" in answer:
        answer = {key: value for key, value in answer.items() if key != "_meta"}
    return digest_of(encode(answer))


def _report_task(
    session: SessionState, context: RequestContext, answer: Json, *, failed: bool
) -> None:
    if context.task in session.unreported_tasks:
        call_digest = session.unreported_tasks.pop(context.task)
        _report(session, context.target, call_digest, answer, failed=failed)


def _became_a_task(session: SessionState, context: RequestContext, value: Json) -> bool:
    """Return whether the call became a new task, and remember the tool of the task.

    Until 2025-11-25 its form is `{"task": {…}}`.
    """
    task = value.get("task", value) if isinstance(value, dict) else None
    task_id = task.get("taskId") if isinstance(task, dict) else None
    if not isinstance(task_id, str) or len(task_id) > MAX_TARGET_CHARS:
        return False
    is_new = session.remember_task(task_id, context.target)
    if is_new and not _is_error(value):
        session.unreported_tasks[task_id] = context.call_digest
        return True
    return False


def _is_error(value: Json) -> bool:
    return isinstance(value, dict) and value.get("isError") is True
