"""Errors of a call to the worker, for the agent: each says whether the code was executed."""

from mcpwrap.core.text.sanitise import visible
from mcpwrap.core.wire.execution.execute_api import ExecuteError

_MAX_REASON_CHARS = 500
NOT_EXECUTED = "the code was not executed"
MAY_HAVE_RUN = "the code may have been executed, so look before you repeat the call"


class WorkerError(Exception):
    """Call without a result. The text is for the agent, and ends with the name of the error."""


def unreachable(reason: str) -> WorkerError:
    """Return the error for a worker that cannot be connected to."""
    return WorkerError(
        f"the worker cannot be reached ({_cut(reason)}), so {NOT_EXECUTED}; the operator finds the "
        "reason with `sudo mcpwrap doctor` [E-WORKER-UNREACHABLE]"
    )


def bad_certificate(reason: str) -> WorkerError:
    """Return the error for a worker whose certificate is not trusted."""
    return WorkerError(
        f"the worker's certificate is not trusted ({_cut(reason)}), so {NOT_EXECUTED} "
        "[E-WORKER-CERTIFICATE]"
    )


def busy(reason: str, retry_after_s: int) -> WorkerError:
    """Return the error for a worker that has refused the call for as long as it was retried."""
    detail = f" ({_cut(reason)})" if reason else ""
    return WorkerError(
        f"the worker is busy{detail}, so {NOT_EXECUTED}; try again in {retry_after_s} s "
        "[E-WORKER-BUSY]"
    )


def not_sent() -> WorkerError:
    """Return the error for a connection that broke while the request was sent."""
    return WorkerError(
        f"the connection to the worker broke before it had the request, so {NOT_EXECUTED} "
        "[E-WORKER-LOST]"
    )


def lost() -> WorkerError:
    """Return the error for a connection that broke after the request was sent."""
    return WorkerError(
        f"the worker has gone before the result was complete: {MAY_HAVE_RUN} [E-WORKER-LOST]"
    )


def overdue(seconds: int) -> WorkerError:
    """Return the error for a result that did not come in time, queue included."""
    return WorkerError(
        f"the worker sent no result within {seconds} s: {MAY_HAVE_RUN} [E-WORKER-LOST]"
    )


def malformed() -> WorkerError:
    """Return the error for a reply that violates the format, or is too long."""
    return WorkerError(
        f"the worker's reply is not one that this version understands: {MAY_HAVE_RUN} "
        "[E-WORKER-RESPONSE]"
    )


def refused(status: int, error: ExecuteError) -> WorkerError:
    """Return the error for a reply of the worker after which the call may not be repeated."""
    reason = _cut(error.error)
    if status == 401:
        return WorkerError(
            f"the worker refuses this server's token, so {NOT_EXECUTED}; the operator renews it "
            "with `sudo mcpwrap apply` [E-WORKER-TOKEN]"
        )
    outcome = MAY_HAVE_RUN if error.executed else NOT_EXECUTED
    if status in (400, 408, 413):
        return WorkerError(f"the worker refuses the request: {reason}; {outcome}")
    return WorkerError(f"the worker has failed ({status}): {reason}; {outcome} [E-WORKER-FAILED]")


def _cut(reason: str) -> str:
    reason = visible(" ".join(reason.split()))
    return reason if len(reason) <= _MAX_REASON_CHARS else reason[:_MAX_REASON_CHARS] + "…"
