"""Call outcomes for the circuit breaker: each reported once, at the response or the task's end."""

from mcpwrap.core.gate.in_flight import MAX_TARGET_CHARS, RequestContext
from mcpwrap.core.gate.session import SessionState
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.json_value import Json


def report_result(session: SessionState, context: RequestContext, value: Json) -> None:
    """Report the outcome of a call, from the result of a request."""
    match context.method:
        case methods.TOOLS_CALL:
            if not _became_a_task(session, context.target, value):
                session.limits.report(context.target, failed=_is_error(value))
        case methods.TASKS_RESULT:
            _report_task(session, context, failed=_is_error(value))
        case methods.TASKS_GET:
            report_task_state(session, context, value)
        case _:
            pass


def report_task_state(session: SessionState, context: RequestContext, state: Json) -> None:
    """Report the outcome of a task from its state; a cancelled one has neither outcome."""
    match state:
        case {"status": "failed"} | {"error": _}:
            _report_task(session, context, failed=True)
        case {"result": result}:
            _report_task(session, context, failed=_is_error(result))
        case _:
            pass


def report_failure(session: SessionState, context: RequestContext) -> None:
    """Report the failure of a call: an error, or a response that cannot be read."""
    match context.method:
        case methods.TOOLS_CALL:
            session.limits.report(context.target, failed=True)
        case methods.TASKS_RESULT:
            _report_task(session, context, failed=True)
        case _:
            pass


def _report_task(session: SessionState, context: RequestContext, *, failed: bool) -> None:
    if context.task in session.unreported_tasks:
        session.unreported_tasks.remove(context.task)
        session.limits.report(context.target, failed=failed)


def _became_a_task(session: SessionState, tool: str, value: Json) -> bool:
    """Return whether the call became a new task, and remember the tool of the task.

    Until 2025-11-25 its form is `{"task": {…}}`.
    """
    task = value.get("task", value) if isinstance(value, dict) else None
    task_id = task.get("taskId") if isinstance(task, dict) else None
    if not isinstance(task_id, str) or len(task_id) > MAX_TARGET_CHARS:
        return False
    is_new = session.remember_task(task_id, tool)
    if is_new and not _is_error(value):
        session.unreported_tasks.add(task_id)
        return True
    return False


def _is_error(value: Json) -> bool:
    return isinstance(value, dict) and value.get("isError") is True
