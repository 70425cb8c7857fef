"""Client of the worker: statuses, retries, lost connections, and replies that lie."""

import json
import re
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme

from mcpwrap.as_python import call_progress, worker_client
from mcpwrap.as_python.call_progress import CallCancelledError, CallInProgress
from mcpwrap.as_python.worker_client import WorkerClient
from mcpwrap.core.execution.worker_errors import MAY_HAVE_RUN, NOT_EXECUTED, WorkerError
from mcpwrap.core.wire.execution.execute_api import ExecuteRequest, ExecuteResult
from mcpwrap.core.wire.execution.worker_file import RunLimits
from tests.shared import pace
from tests.unit.as_python import worker
from tests.unit.as_python.worker import SUCCESS, TOKEN, Reply, RunningCall, StandInWorker

REQUEST = ExecuteRequest(code="print(1)", timeout=9)
LIMITS = RunLimits(output_bytes=100)


def in_progress() -> CallInProgress:
    return CallInProgress(None, lambda _params: None)


def outcome(*replies: Reply, retry_s: float = 30.0) -> tuple[ExecuteResult | str, int]:
    """Return the result of a call, or the text of its error, and how many requests were sent."""
    with StandInWorker().running() as there:
        there.will(*replies)
        client = WorkerClient(there.url, TOKEN, LIMITS, retry_s=retry_s)
        try:
            return client.execute(REQUEST, in_progress()), len(there.requests)
        except WorkerError as error:
            return str(error), len(there.requests)


def test_the_request_has_the_form_of_the_interface() -> None:
    with StandInWorker().running() as there:
        there.will(worker.result())
        client = WorkerClient(there.url, TOKEN, LIMITS)
        assert client.execute(REQUEST, in_progress()).stdout == "1\n"
        assert msgspec.convert(there.requests[0], ExecuteRequest) == REQUEST
        headers = there.headers[0]
        assert headers["Authorization"] == f"Bearer {TOKEN}"
        assert headers["Accept"] == "application/x-ndjson"
        assert TOKEN not in repr(client)


@pytest.mark.parametrize(
    ("code", "body", "text"),
    [
        (400, '{"error": "bad name"}', f"refuses the request: bad name; {NOT_EXECUTED}"),
        (401, '{"error": "x"}', "refuses this server's token"),
        (403, '{"error": "origin"}', "has failed (403): origin"),
        (413, '{"error": "too long"}', "refuses the request: too long"),
        (500, '{"error": "slot", "executed": false}', f"slot; {NOT_EXECUTED}"),
        (500, '{"error": "slot", "executed": true}', f"slot; {MAY_HAVE_RUN}"),
        (429, '{"error": "odd", "executed": true}', f"odd; {MAY_HAVE_RUN}"),  # not repeated
        # A proxy's: the worker behind it may have had the request.
        (502, "<html>", f"Bad Gateway; {MAY_HAVE_RUN}"),
        (504, "<html>", f"Gateway Timeout; {MAY_HAVE_RUN}"),
        (302, "", f"Found; {NOT_EXECUTED}"),
    ],
)
def test_a_status_is_a_clear_error(code: int, body: str, text: str) -> None:
    found, requests = outcome(worker.status(code, body))
    assert text in str(found)
    assert requests == 1


@pytest.mark.parametrize("code", [429, 503])
def test_a_busy_worker_is_asked_again(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(CallInProgress, "pause", lambda _self, seconds: pauses.append(seconds))
    refusals = [worker.status(code, Retry_After="2"), worker.status(code, "<html>")]
    found, requests = outcome(*refusals, worker.result())
    assert isinstance(found, ExecuteResult)
    assert requests == 3
    assert [int(pause) for pause in pauses] == [2, 1]  # with a part of a second


def test_a_request_in_the_queue_of_a_worker_that_stops_is_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CallInProgress, "pause", lambda *_: None)
    stops = b'{"error": {"error": "the worker stops", "status": 503}}\n'
    found, requests = outcome(worker.raw(QUEUED_LINE + stops), worker.result())
    assert isinstance(found, ExecuteResult)
    assert requests == 2


def test_a_worker_that_stays_busy_is_an_error() -> None:
    found, requests = outcome(
        worker.status(429, '{"error": "8 runs wait"}', Retry_After="7"), retry_s=5.0
    )
    assert found == (
        f"the worker is busy (8 runs wait), so {NOT_EXECUTED}; try again in 7 s [E-WORKER-BUSY]"
    )
    assert requests == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, 1), ("", 1), ("0", 1), ("3", 3), ("600", 10), ("-1", 1), ("x", 1), ("²", 1),
     ("Wed, 21 Oct 2026 07:28:00 GMT", 1)],
)  # fmt: skip
def test_retry_after(header: str | None, seconds: int) -> None:
    assert worker_client._retry_after_s(header) == seconds


RESULT_LINE = json.dumps({"result": SUCCESS}).encode() + b"\n"
PROGRESS_LINE = b'{"progress": {"state": "running", "elapsed_ms": 1}}\n'
QUEUED_LINE = b'{"progress": {"state": "queued", "elapsed_ms": 1}}\n'
LONG = b"x" * (worker_client._MAX_LINE_BYTES + 2 * 6 * 100 + 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", "has gone"),
        (PROGRESS_LINE, "has gone"),
        (RESULT_LINE[:-1], "has gone"),  # cut off, as far as one can know
        (b"x\n", "E-WORKER-RESPONSE"),
        (b"\xff\n", "E-WORKER-RESPONSE"),
        (b'{"result": {"stdout": "1"}}\n', "E-WORKER-RESPONSE"),
        (b'{"progress": {"state": "odd", "elapsed_ms": 1}}\n', "E-WORKER-RESPONSE"),
        (b'{"result": {"stdout": 1}}\n', "E-WORKER-RESPONSE"),
        (LONG, "E-WORKER-RESPONSE"),
        (b'{"error": {"error": "slot", "executed": true, "status": 500}}\n', MAY_HAVE_RUN),
        (b'{"error": {"error": "slot", "status": 500}}\n', f"(500): slot; {NOT_EXECUTED}"),
    ],
)  # fmt: skip
def test_a_broken_stream_is_an_error_and_not_repeated(text: bytes, expected: str) -> None:
    found, requests = outcome(worker.raw(text))
    assert expected in str(found)
    assert requests == 1


def test_progress_lines_and_unknown_lines_precede_the_result() -> None:
    found, _ = outcome(worker.raw(PROGRESS_LINE + b"{}\n" + RESULT_LINE))
    assert isinstance(found, ExecuteResult)


def test_a_newer_worker_may_report_more() -> None:
    found, _ = outcome(worker.result(of_a_later_version=1))
    assert isinstance(found, ExecuteResult)


def test_no_worker_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        client = WorkerClient(f"http://127.0.0.1:{taken.getsockname()[1]}", TOKEN, LIMITS)
        with pytest.raises(WorkerError, match=re.escape("cannot be reached (Connection refused)")):
            client.execute(REQUEST, in_progress())


def test_a_worker_without_tls_is_not_reached_by_https() -> None:
    with StandInWorker().running() as there:
        client = WorkerClient(there.url.replace("http:", "https:"), TOKEN, LIMITS)
        with pytest.raises(WorkerError, match="E-WORKER-UNREACHABLE"):
            client.execute(REQUEST, in_progress())
        assert there.requests == []  # the token was not sent in the clear


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def over_tls(authority: trustme.CA, name: str) -> StandInWorker:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return StandInWorker(context)


def test_a_worker_on_another_machine_is_reached_by_tls(
    authority: trustme.CA, tmp_path: Path
) -> None:
    authority.cert_pem.write_to_path(ca_file := str(tmp_path / "ca.pem"))
    call, run = in_progress(), RunningCall()
    with over_tls(authority, "127.0.0.1").running() as there:
        client = WorkerClient(there.url, TOKEN, LIMITS, ca_file=ca_file)
        there.will(worker.result(), run.until_gone)
        assert client.execute(REQUEST, in_progress()).stdout == "1\n"

        def cancel() -> None:
            assert run.has_begun.wait(pace.WAIT_S)
            call.cancel()

        with _in_thread(cancel), pytest.raises(CallCancelledError):
            client.execute(REQUEST, call)
        assert run.has_caller_gone.wait(pace.WAIT_S)


@pytest.mark.parametrize(("name", "is_trusted"), [("127.0.0.2", True), ("127.0.0.1", False)])
def test_a_certificate_of_another_name_or_authority_is_refused(
    authority: trustme.CA, tmp_path: Path, name: str, *, is_trusted: bool
) -> None:
    trusted = authority if is_trusted else trustme.CA()
    trusted.cert_pem.write_to_path(ca_file := str(tmp_path / "ca.pem"))
    with over_tls(authority, name).running() as there:
        client = WorkerClient(there.url, TOKEN, LIMITS, ca_file=ca_file)
        with pytest.raises(WorkerError, match="E-WORKER-CERTIFICATE"):
            client.execute(REQUEST, in_progress())
        assert there.requests == []


def test_a_missing_authority_is_an_error(tmp_path: Path) -> None:
    client = WorkerClient("https://127.0.0.1:9", TOKEN, LIMITS, ca_file=str(tmp_path / "none"))
    with pytest.raises(WorkerError, match="No such file or directory"):
        client.execute(REQUEST, in_progress())


def test_a_request_that_is_cut_off_was_not_executed() -> None:
    large = ExecuteRequest(code="1", files={"a": "A" * 16 * 1024**2})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = WorkerClient(f"http://127.0.0.1:{listener.getsockname()[1]}", TOKEN, LIMITS)

        def reset() -> None:
            connection, _ = listener.accept()
            connection.recv(1)
            _reset(connection)

        with _in_thread(reset), pytest.raises(WorkerError, match="before it had the request"):
            client.execute(large, in_progress())


def test_a_reply_before_the_request_is_complete_counts() -> None:
    """A worker that refuses by `Content-Length` does not read the body."""
    large = ExecuteRequest(code="1", files={"a": "A" * 16 * 1024**2})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = WorkerClient(f"http://127.0.0.1:{listener.getsockname()[1]}", TOKEN, LIMITS)

        def refuse() -> None:
            connection, _ = listener.accept()
            connection.recv(1)
            connection.sendall(b"HTTP/1.1 413 X\r\nContent-Length: 0\r\n\r\n")
            _reset(connection)

        with _in_thread(refuse), pytest.raises(WorkerError, match="refuses the request"):
            client.execute(large, in_progress())


def test_a_connection_that_is_reset_after_the_request_is_lost() -> None:
    found, _ = outcome(lambda handler: _reset(handler.connection))
    assert MAY_HAVE_RUN in str(found)


def _reset(connection: socket.socket) -> None:
    """Close with a reset in place of the end of the stream (socket(7), SO_LINGER)."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.shutdown(socket.SHUT_RD)
    connection.close()


@contextmanager
def _in_thread(act: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=act)
    thread.start()
    yield
    thread.join(pace.WAIT_S)


def test_a_cancelled_call_sends_nothing() -> None:
    call = in_progress()
    call.cancel()
    with StandInWorker().running() as there:
        with pytest.raises(CallCancelledError):
            WorkerClient(there.url, TOKEN, LIMITS).execute(REQUEST, call)
        assert there.requests == []


def test_an_overdue_result_ends_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_client, "_OVERHEAD_S", -9 - 4 * 60.0)  # a deadline of 0 s
    run = RunningCall()
    call = in_progress()
    ticker = call_progress.CallTicker(0.01)
    with StandInWorker().running() as there:
        there.will(run.until_gone)
        ticker.add(call)
        with pytest.raises(WorkerError, match="no result within 0 s"):
            WorkerClient(there.url, TOKEN, LIMITS).execute(REQUEST, call)
        assert call.is_overdue
    ticker.discard(call)


def test_progress_tells_the_state() -> None:
    seen: list[Any] = []
    run = RunningCall()
    call = CallInProgress("t", seen.append)
    with StandInWorker().running() as there:
        run.may_end.set()
        there.will(run.until_told)
        WorkerClient(there.url, TOKEN, LIMITS).execute(REQUEST, call)
        assert run.has_begun.wait(pace.WAIT_S)
    call.tick(call._began_s + 2)
    assert seen == [
        {
            "progressToken": "t",
            "progress": 2.0,
            "message": "2 s: running; output ends with: half way",
        }
    ]
