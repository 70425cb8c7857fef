"""Errors of the worker: each says whether the code was executed, in one line."""

import pytest

from mcpwrap.core.execution import worker_errors
from mcpwrap.core.execution.worker_errors import MAY_HAVE_RUN, NOT_EXECUTED, WorkerError
from mcpwrap.core.wire.execution.execute_api import ExecuteError


@pytest.mark.parametrize(
    ("error", "outcome", "text"),
    [
        (worker_errors.unreachable("no route"), NOT_EXECUTED, "(no route)"),
        (worker_errors.bad_certificate("expired"), NOT_EXECUTED, "(expired)"),
        (worker_errors.busy("8 runs wait", 3), NOT_EXECUTED, "busy (8 runs wait), so"),
        (worker_errors.busy("", 3), NOT_EXECUTED, "busy, so"),
        (worker_errors.not_sent(), NOT_EXECUTED, "before it had the request"),
        (worker_errors.lost(), MAY_HAVE_RUN, "has gone"),
        (worker_errors.overdue(9), MAY_HAVE_RUN, "within 9 s"),
        (worker_errors.malformed(), MAY_HAVE_RUN, "E-WORKER-RESPONSE"),
        (worker_errors.refused(401, ExecuteError(error="x")), NOT_EXECUTED, "sudo mcpwrap apply"),
        (worker_errors.refused(400, ExecuteError(error="x")), NOT_EXECUTED, "the request: x"),
        (worker_errors.refused(408, ExecuteError(error="x")), NOT_EXECUTED, "refuses the request"),
        (worker_errors.refused(413, ExecuteError(error="x")), NOT_EXECUTED, "refuses the request"),
        (worker_errors.refused(500, ExecuteError(error="x")), NOT_EXECUTED, "failed (500): x;"),
        (worker_errors.refused(500, ExecuteError(error="x", executed=True)), MAY_HAVE_RUN, "500"),
    ],
)  # fmt: skip
def test_an_error_says_whether_the_code_was_executed(
    error: WorkerError, outcome: str, text: str
) -> None:
    assert outcome in str(error)
    assert text in str(error)


def test_the_workers_words_are_one_line_of_bounded_length() -> None:
    text = str(worker_errors.refused(500, ExecuteError(error="a\n\x1b[31mb" + "x" * 1000)))
    assert "a \\x1b[31mbx" in text
    assert "\n" not in text
    assert len(text) < 700
