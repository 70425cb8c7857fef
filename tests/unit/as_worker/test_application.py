"""Requests to the worker: each status, the queue, streams, callers that hang up, and draining."""

import json
import queue
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpwrap.as_worker import request_body
from mcpwrap.as_worker.application import WorkerApplication
from mcpwrap.as_worker.state import WorkerConnectionLimits
from mcpwrap.core.wire.execution.execute_api import NDJSON
from mcpwrap.core.wire.execution.job_frames import STDOUT
from mcpwrap.core.wire.execution.worker_file import RunLimits
from tests.shared import pace
from tests.unit.as_worker.slots import Job, echo
from tests.unit.as_worker.world import POOL, TOKEN, World, running
from tests.unit.http_service import Headers

ONE = RunLimits(at_once=1)
BODY = b'{"code": "1"}'
HEAD = b"POST /execute HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer %s\r\n" % TOKEN.encode()


class Held:
    """Supervisor that ends a run when the test says so, and records when its caller hangs up."""

    def __init__(self) -> None:
        self.running: queue.Queue[str] = queue.Queue()
        self.may_end = threading.Semaphore(0)

    def __call__(self, job: Job) -> None:
        job.send(STDOUT, b"so far")
        self.running.put(job.request["code"])
        assert self.may_end.acquire(timeout=pace.WAIT_S)
        job.end()

    def next(self) -> str:
        return self.running.get(timeout=pace.WAIT_S)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with running(tmp_path, limits=ONE) as world:
        yield world


@pytest.mark.parametrize(
    ("token", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer  {TOKEN}", 200),
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        ("Bearer ", 401),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        ("Bearer x", 401),
        (f"Bearer {TOKEN} x", 401),
        (f"Bearer {'x' * 600}", 401),
        ("Bearer \xe4", 401),
    ],
)
@pytest.mark.parametrize(("method", "path"), [("POST", "/execute"), ("GET", "/metrics")])
def test_a_request_needs_a_token(
    world: World, token: str | None, status: int, method: str, path: str
) -> None:
    body = BODY if method == "POST" else None
    answer = world.ask(method, path, {"Authorization": token}, body)
    assert answer.status == status
    assert (answer.header("WWW-Authenticate") == "Bearer") is (status == 401)
    if status == 401:
        expected = {"error": "the token is missing, or is not the token of a pool"}
        assert answer.json() == expected


def test_a_token_is_replaced_without_a_restart(world: World) -> None:
    world.folder.set_token(POOL, "new")
    assert world.execute().status == 401
    assert world.execute(headers={"Authorization": "Bearer new"}).status == 200
    world.folder.configure(other=ONE)
    assert world.execute(headers={"Authorization": "Bearer new"}).status == 401


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/healthz", {}, 200),
        ("GET", "/healthz", {"Host": None}, 400),  # RFC 9112, 3.2
        ("GET", "/healthz", {"Host": "localhost"}, 403),  # a name that a page may have rebound
        ("GET", "/healthz", {"Host": "evil.example:52200"}, 403),
        ("GET", "/healthz", {"Origin": "http://evil.example"}, 403),
        ("GET", "/healthz", {"Origin": "null"}, 403),
        ("POST", "/execute", {"Origin": "http://127.0.0.1"}, 403),
        ("GET", "/", {}, 404),
        ("GET", "/healthz?x", {}, 404),
        ("GET", "/healthz/", {}, 404),
        ("GET", "/execute", {}, 405),
        ("PUT", "/execute", {}, 405),
        ("POST", "/healthz", {}, 405),
        ("POST", "/execute", {"Content-Encoding": "gzip"}, 400),
    ],
)
def test_a_head_is_judged(
    world: World, method: str, path: str, headers: Headers, status: int
) -> None:
    answer = world.ask(method, path, headers, BODY if method == "POST" else None)
    assert answer.status == status
    assert answer.header("Server") == "mcpwrap" or status == 400
    assert (answer.header("Allow") is not None) is (status == 405)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (HEAD + b"Connection: close\r\nContent-Length: 13\r\n\r\n" + BODY, 200),
        (HEAD.replace(b"1.1", b"1.0") + b"Content-Length: 13\r\n\r\n" + BODY, 200),
        (HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n"
         + BODY + b"\r\n0\r\n\r\n", 200),
        (HEAD + b"Content-Length: 99999999\r\n\r\n", 413),  # before it is read
        (HEAD + b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", 413),
        (HEAD + b"Content-Length: 13\r\nContent-Length: 14\r\n\r\n" + BODY, 400),
        (HEAD + b"Content-Length: -1\r\n\r\n" + BODY, 400),
        (HEAD + b"X: " + b"x" * 5000 + b"\r\n\r\n", 400),
        (b"GARBAGE\r\n\r\n", 400),
    ],
)  # fmt: skip
def test_bytes_on_the_wire(world: World, request_: bytes, status: int) -> None:
    assert int(world.raw(request_).split(b" ")[1]) == status


def test_a_body_is_requested_when_it_is_wanted(world: World) -> None:
    head = HEAD + b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: 13\r\n\r\n"
    with socket.create_connection(("127.0.0.1", world.port), timeout=pace.WAIT_S) as connection:
        connection.sendall(head.replace(b"HOST", world.host.encode()))
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(BODY)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_chunked_body_is_limited_while_it_is_read(world: World) -> None:
    chunk = b"%x\r\n%b\r\n" % (2**20, b" " * 2**20)
    too_many = request_body.max_body_bytes(ONE) // 2**20 + 1
    answer = world.raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + too_many * chunk)
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_must_be_complete_in_time(tmp_path: Path) -> None:
    limits = WorkerConnectionLimits(body_s=0.05)
    with running(tmp_path, connections=limits) as world:
        slow = world.execute(headers={"Content-Length": "99"})
        assert (slow.status, slow.header("Connection")) == (408, "close")
        assert slow.json() == {"error": "the body took more than 0.05 s"}
        assert world.execute().status == 200


@pytest.mark.parametrize("body", [b"", b"{", b'{"code": ""}', b'{"code": "1", "more": 1}'])
def test_an_invalid_body_is_an_error(world: World, body: bytes) -> None:
    answer = world.ask("POST", "/execute", body=body)
    assert answer.status == 400
    assert set(answer.json()) == {"error"}
    assert world.slots[0].starts.qsize() == 0


def test_a_full_queue_is_an_error_with_the_time_to_wait(tmp_path: Path) -> None:
    held = Held()
    with running(tmp_path, held, ONE) as world:
        streams = [world.stream("0")]
        assert held.next() == "0"
        for number in range(1, 5):
            streams.append(world.stream(str(number)))
            assert streams[-1].until_state("queued")["ahead"] == number - 1
        for refused in (world.execute("5"), world.stream("5")):
            assert (refused.status, refused.header("Retry-After")) == (429, "1")
            expected = "all slots are in use, and 4 requests wait"
            assert refused.json() == {"error": expected}
        for number in range(5):  # in the order of their arrival
            held.may_end.release()
            assert streams[number].last()["result"]["stdout"] == "so far"
            if number < 4:
                assert held.next() == str(number + 1)
        held.may_end.release()
        assert world.execute("6").status == 200


def test_a_stream_has_the_state_and_the_output_so_far(tmp_path: Path) -> None:
    held = Held()
    with running(tmp_path, held, ONE) as world:
        answer = world.stream()
        assert (answer.status, answer.header("Content-Type")) == (200, NDJSON)
        held.next()
        while (progress := answer.until_state("running"))["output"] != "so far":
            assert progress["output"] == ""
        held.may_end.release()
        result = answer.last()["result"]
    assert (result["exit_code"], result["stdout"]) == (0, "so far")


def test_a_stream_ends_with_an_error_that_has_a_status(tmp_path: Path) -> None:
    with running(tmp_path, lambda job: job.write(b"garbage"), ONE) as world:
        error = world.stream().last()["error"]
    assert (error["status"], error["executed"]) == (500, True)
    with running(tmp_path, slots=0, limits=ONE) as world:
        error = world.stream().last()["error"]
    assert error == {"error": f"cannot connect to {world.folder.slot()}: Connection refused",
                     "status": 503}  # fmt: skip


def close(connection: socket.socket) -> None:
    connection.close()


def half_close(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("hang_up", [close, half_close])
@pytest.mark.parametrize("accept", [b"", b"Accept: application/x-ndjson\r\n"])
def test_a_caller_that_hangs_up_ends_its_run(
    tmp_path: Path,
    hang_up: Callable[[socket.socket], None],
    accept: bytes,
    capfd: pytest.CaptureFixture[str],
) -> None:
    ended: queue.Queue[None] = queue.Queue()
    began: queue.Queue[None] = queue.Queue()

    def play(job: Job) -> None:
        if job.request["code"] == "2":
            echo(job)
            return
        began.put(None)
        job.until_hung_up()
        ended.put(None)

    with running(tmp_path, play, ONE) as world:
        head = (HEAD + accept).replace(b"HOST", world.host.encode())
        with socket.create_connection(("127.0.0.1", world.port)) as connection:
            connection.sendall(head + b"Content-Length: 13\r\n\r\n" + BODY)
            began.get(timeout=pace.WAIT_S)
            hang_up(connection)
            ended.get(timeout=pace.WAIT_S)
        assert world.execute("2").json()["stdout"] == "2"
        metrics = world.ask("GET", "/metrics").text()
    assert 'mcpwrap_worker_runs_total{pool="notes",ending="cancelled"} 1\n' in metrics
    assert "timeout 60 s, ended by its caller\n" in capfd.readouterr().err


def test_a_caller_that_hangs_up_leaves_the_queue(tmp_path: Path) -> None:
    held = Held()
    with running(tmp_path, held, ONE) as world:
        first = world.stream("1")
        held.next()
        second = world.stream("2")
        second.until_state("queued")
        second.close()
        world.until_health(queued=0, running=1)
        held.may_end.release(2)
        assert first.last()["result"]["exit_code"] == 0
        assert world.execute("3").status == 200
        assert held.next() == "3"  # the second was never executed


def test_health_is_shown_without_a_token(tmp_path: Path) -> None:
    held = Held()
    with running(tmp_path, held, RunLimits(at_once=2)) as world:
        assert world.health() == {"status": "ok", "slots": 2, "running": 0, "queued": 0}
        answer = world.stream()
        held.next()
        assert world.health() == {"status": "ok", "slots": 2, "running": 1, "queued": 0}
        held.may_end.release()
        answer.last()


def test_metrics_show_the_pool_of_the_token(world: World) -> None:
    world.folder.configure(notes=ONE, other=ONE)
    world.execute().json()
    world.execute("").json()
    world.until_health(running=0)
    answer = world.ask("GET", "/metrics")
    assert answer.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    text = answer.text()
    assert "other" not in text
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert samples == [
        "mcpwrap_worker_draining 0",
        'mcpwrap_worker_slots{pool="notes"} 1',
        'mcpwrap_worker_running{pool="notes"} 0',
        'mcpwrap_worker_queued{pool="notes"} 0',
        'mcpwrap_worker_runs_total{pool="notes",ending="exit"} 1',
        *(f'mcpwrap_worker_runs_total{{pool="notes",ending="{ending}"}} 0'
          for ending in ("signal", "timeout", "memory", "output", "start", "failed", "cancelled")),
        'mcpwrap_worker_run_seconds_total{pool="notes"} 0.0',
        'mcpwrap_worker_rejected_total{pool="notes",status="400"} 1',
    ]  # fmt: skip


def test_a_draining_worker_finishes_what_it_has(tmp_path: Path) -> None:
    held = Held()
    with running(tmp_path, held, ONE) as world:
        streams = [world.stream("1")]
        held.next()
        streams.append(world.stream("2"))
        streams[1].until_state("queued")
        world.signal(signal.SIGUSR1)
        world.until_health(status="draining")
        health = world.ask("GET", "/healthz", {"Authorization": None})
        assert health.status == 503
        refused = world.execute()
        assert (refused.status, refused.header("Retry-After")) == (503, "5")
        assert refused.header("Connection") == "close"
        assert refused.json() == {"error": "the worker is draining"}
        assert "mcpwrap_worker_draining 1\n" in world.ask("GET", "/metrics").text()
        held.may_end.release(2)
        assert [each.last()["result"]["exit_code"] for each in streams] == [0, 0]
        world.signal(signal.SIGUSR2)
        world.until_health(status="ok")
        held.may_end.release()
        assert world.execute().status == 200
        drained = "draining: 1 of 1 slots run, 1 requests wait; notes 1 run, 1 wait"
        assert drained in world.notifier.statuses


@pytest.mark.parametrize(
    ("panic", "status"),
    [
        ('{"everything": true}', 503),
        ('{"names": ["notes"]}', 503),
        ('{"names": ["other"]}', 200),
        ("", 503),  # a disk so full that the file has no content
        ("{}", 200),
    ],
)
def test_an_emergency_stop_refuses_runs(tmp_path: Path, panic: str, status: int) -> None:
    with running(tmp_path) as world:
        assert world.execute().status == 200
        (tmp_path / "panic.json").write_text(panic)
        refused = world.execute()
        assert refused.status == status
        if status == 503:
            assert refused.json() == {"error": "`mcpwrap panic` has stopped it"}
        (tmp_path / "panic.json").unlink()
        assert world.execute().status == 200


def test_the_status_follows_the_runs(tmp_path: Path) -> None:
    held = Held()
    with running(tmp_path, held, ONE) as world:
        pace.until(lambda: bool(world.notifier.statuses))
        assert world.notifier.statuses == ["ready: 0 of 1 slots run, 0 requests wait"]
        answer = world.stream()
        held.next()
        runs = "ready: 1 of 1 slots run, 0 requests wait; notes 1 run, 0 wait"
        pace.until(lambda: runs in world.notifier.statuses)
        held.may_end.release()
        answer.last()
        expected = "ready: 0 of 1 slots run, 0 requests wait"
        pace.until(lambda: world.notifier.statuses[-1] == expected)


def test_a_worker_that_stops_lets_runs_end(tmp_path: Path) -> None:
    held = Held()
    with running(tmp_path, held, ONE) as world:
        first, second = world.stream("1"), world.stream("2")
        held.next()
        second.until_state("queued")
        world.signal(signal.SIGTERM)
        error = second.last()["error"]
        assert (error["status"], error.get("executed", False)) == (503, False)
        assert world.execute().status == 503
        assert world.health() == {"status": "draining", "slots": 1, "running": 1, "queued": 0}
        last = "draining: 1 of 1 slots run, 0 requests wait; notes 1 run, 0 wait"
        pace.until(lambda: last in world.notifier.statuses)
        held.may_end.release()
        assert first.last()["result"]["stdout"] == "so far"
        world.until_stopped()


def test_a_worker_does_not_wait_for_ever(tmp_path: Path) -> None:
    ended: queue.Queue[None] = queue.Queue()

    def play(job: Job) -> None:
        job.send(STDOUT, b"x")
        job.until_hung_up()
        ended.put(None)

    with running(tmp_path, play, ONE, stop_s=0.1) as world:
        answer = world.stream()
        answer.until_state("running")
        world.signal(signal.SIGTERM)
        world.until_stopped()
        ended.get(timeout=pace.WAIT_S)


def test_connections_are_limited(tmp_path: Path) -> None:
    limits = WorkerConnectionLimits(connections=1)
    held = Held()
    with running(tmp_path, held, ONE, connections=limits) as world:
        with socket.create_connection(("127.0.0.1", world.port), timeout=pace.WAIT_S) as idle:
            idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: %b\r\n\r\n" % world.host.encode())
            assert idle.recv(65536).startswith(b"HTTP/1.1 200 ")
            answer = world.stream()  # in place of the idle one
            assert idle.recv(1) == b""
        held.next()
        with socket.create_connection(("127.0.0.1", world.port), timeout=pace.WAIT_S) as another:
            assert another.recv(1) == b""  # all are in use
        held.may_end.release()
        answer.last()


def test_a_silent_connection_is_closed(tmp_path: Path) -> None:
    limits = WorkerConnectionLimits(head_s=0.05)
    with (
        running(tmp_path, connections=limits) as world,
        socket.create_connection(("127.0.0.1", world.port), timeout=pace.WAIT_S) as silent,
    ):
        assert silent.recv(1) == b""


def test_a_bug_ends_one_request_and_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("of a test")

    with monkeypatch.context() as patch:
        patch.setattr(WorkerApplication, "_answer", fail)
        broken = world.execute()
        assert broken.status == 500
        assert "of a test" not in json.dumps(broken.json())
    with monkeypatch.context() as patch:
        patch.setattr("mcpwrap.as_worker.runs.RunExecutor.execute", fail)
        assert world.stream().last()["error"]["status"] == 500
    assert world.execute().status == 200
    assert capfd.readouterr().err.count("RuntimeError: of a test") == 2
