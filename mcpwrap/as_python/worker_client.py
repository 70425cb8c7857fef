"""HTTP client of the worker: one request, its progress lines, and its result.

A request is repeated only while the worker refuses it (429, 503), also from its queue: it has not
been executed then. It is never repeated for another reason.
"""

import http.client
import secrets
import socket
import ssl
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlsplit

import msgspec

from mcpwrap.as_python.call_progress import CallInProgress
from mcpwrap.core.execution import worker_errors
from mcpwrap.core.execution.worker_errors import WorkerError
from mcpwrap.core.wire.execution import execute_api, job_frames, worker_file
from mcpwrap.core.wire.execution.execute_api import (
    ExecuteError,
    ExecuteRequest,
    ExecuteResult,
    Progress,
    StreamLine,
)
from mcpwrap.core.wire.execution.worker_file import RunLimits

_CONNECT_S = 10.0
_SILENT_S = 30.0  # the worker sends a line each second, also while the request is queued
_RETRY_S = 30.0  # for as long a refused request is repeated
_MAX_RETRY_AFTER_S = 10
_OVERHEAD_S = 30.0  # beyond queue and run: transfer of files
_MAX_ERROR_BYTES = 16 * 1024
# Base64 of all files, and names; text in JSON takes up to six bytes for each (\u0000).
_MAX_LINE_BYTES = job_frames.MAX_OUT_BYTES * 4 // 3 + 1024**2
_JSON_FACTOR = 6
_SHOWN_CHARS = 300  # of the output in a notification
_LINE = msgspec.json.Decoder(StreamLine)
_ERROR = msgspec.json.Decoder(ExecuteError)
_BUSY = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Refusal, 429 or 503: the request may be repeated after this time."""

    reason: str
    retry_after_s: int


@dataclass(frozen=True, slots=True)
class WorkerClient:
    """Client for one worker. Calls may use it from several threads."""

    url: str  # `http://ADDRESS:PORT` or `https://ADDRESS:PORT`
    token: str = field(repr=False)
    limits: RunLimits
    ca_file: str = ""  # authority of the worker's certificate; "" is the machine's
    retry_s: float = _RETRY_S

    def execute(self, request: ExecuteRequest, call: CallInProgress) -> ExecuteResult:
        """Have code executed; report progress meanwhile.

        Raises:
            WorkerError: there is no result.
            CallCancelledError: the call was cancelled; the run has ended, or ends now.
        """
        body = msgspec.json.encode(request)
        timeout_s = self._timeout_s(request)
        began_s = call.elapsed_s  # packages may have been installed before
        while True:
            outcome = self._attempt(body, call, timeout_s)
            if isinstance(outcome, ExecuteResult):
                return outcome
            # A part of a second more or less, so that refused callers do not return all at once.
            pause_s = outcome.retry_after_s + secrets.randbelow(500) / 1000
            if call.elapsed_s - began_s + pause_s > self.retry_s:
                raise worker_errors.busy(outcome.reason, outcome.retry_after_s)
            call.report(f"the worker is busy, next attempt in {outcome.retry_after_s} s")
            call.pause(pause_s)

    def _timeout_s(self, request: ExecuteRequest) -> float:
        """Return the time for queue and run together."""
        run_s = request.timeout or self.limits.seconds
        return run_s + worker_file.QUEUED_PER_SLOT * self.limits.seconds + _OVERHEAD_S

    def _attempt(
        self, body: bytes, call: CallInProgress, timeout_s: float
    ) -> ExecuteResult | _Refusal:
        with closing(self._connect(call)) as connection:
            call.attach(connection.sock, timeout_s)
            try:
                return self._exchange(connection, body, call)
            except (OSError, http.client.HTTPException, ValueError) as error:
                call.expect_wanted()
                raise worker_errors.lost() from error
            except WorkerError:
                call.expect_wanted()  # a cancelled call gets no response
                if call.is_overdue:
                    raise worker_errors.overdue(int(timeout_s)) from None
                raise
            finally:
                call.detach()

    def _connect(self, call: CallInProgress) -> http.client.HTTPConnection:
        call.expect_wanted()
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        connection: http.client.HTTPConnection
        try:
            if parts.scheme == "https":
                context = ssl.create_default_context(cafile=self.ca_file or None)
                connection = http.client.HTTPSConnection(
                    host, parts.port, timeout=_CONNECT_S, context=context
                )
            else:
                connection = http.client.HTTPConnection(host, parts.port, timeout=_CONNECT_S)
            connection.connect()
        except ssl.SSLCertVerificationError as error:
            raise worker_errors.bad_certificate(error.verify_message) from error
        except OSError as error:
            raise worker_errors.unreachable(error.strerror or type(error).__name__) from error
        connection.sock.settimeout(_SILENT_S)
        # A machine that lost its power sends no end of the stream.
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return connection

    def _exchange(
        self, connection: http.client.HTTPConnection, body: bytes, call: CallInProgress
    ) -> ExecuteResult | _Refusal:
        headers = {
            "Accept": execute_api.NDJSON,
            "Authorization": f"Bearer {self.token}",
            "Connection": "close",
            "Content-Type": "application/json",
        }
        is_sent = True
        try:
            connection.request("POST", "/execute", body, headers)
        except OSError:
            # The worker may have replied and closed before it read all, as with 413.
            is_sent = False
        try:
            response = connection.getresponse()
        except (OSError, http.client.HTTPException):
            if is_sent:
                raise
            raise worker_errors.not_sent() from None
        with response:
            if response.status == HTTPStatus.OK:
                return self._result(response, call)
            return _refusal(response.status, _error(response), response.getheader("Retry-After"))

    def _result(
        self, response: http.client.HTTPResponse, call: CallInProgress
    ) -> ExecuteResult | _Refusal:
        """Read lines until the last one, which has the result or an error.

        A worker that stops refuses the requests in its queue: another one may serve them.
        """
        limit = _MAX_LINE_BYTES + 2 * _JSON_FACTOR * self.limits.output_bytes
        while line := response.readline(limit + 1):
            if len(line) > limit:
                raise worker_errors.malformed()
            if not line.endswith(b"\n"):
                break
            message = _decoded(line)
            if message.result is not None:
                return message.result
            if message.error is not None:
                return _refusal(message.error.status, message.error, None)
            if message.progress is not None:
                call.report(_described(message.progress))
        raise worker_errors.lost()


def _decoded(line: bytes) -> StreamLine:
    try:
        return _LINE.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise worker_errors.malformed() from error


def _error(response: http.client.HTTPResponse) -> ExecuteError:
    # 502 and 504 are a proxy's: the worker behind it may have had the request.
    is_unclear = response.status >= 500 and response.status not in _BUSY
    reply = ExecuteError(error=response.reason, executed=is_unclear)
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        reply = _ERROR.decode(response.read(_MAX_ERROR_BYTES))
    return reply


def _refusal(status: int, error: ExecuteError, retry_after: str | None) -> _Refusal:
    """Return the refusal of a request that may be repeated.

    Raises:
        WorkerError: it may not.
    """
    if status not in _BUSY or error.executed:
        raise worker_errors.refused(status, error)
    return _Refusal(error.error, _retry_after_s(retry_after))


def _retry_after_s(header: str | None) -> int:
    """Return the time of a `Retry-After` in seconds; a date (RFC 9110 10.2.3) counts as one."""
    seconds = int(header) if header and header.isascii() and header.isdigit() else 1
    return min(max(seconds, 1), _MAX_RETRY_AFTER_S)


def _described(progress: Progress) -> str:
    if progress.state == "queued":
        return f"queued, {progress.ahead} runs before this one"
    shown = progress.output[-_SHOWN_CHARS:]
    return f"running; output ends with: {shown}" if shown else "running, no output so far"
