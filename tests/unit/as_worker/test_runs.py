"""Runs of the worker: results, limits, slots made ready in advance, and lying supervisors."""

import base64
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from mcpwrap.as_worker.slot_client import TRIES, SlotTimeouts
from mcpwrap.core.wire.execution.job_frames import (
    END,
    FILE,
    HEAD,
    STDERR,
    STDOUT,
    VALUE,
    frame,
)
from mcpwrap.core.wire.execution.worker_file import RunLimits
from tests.shared import pace
from tests.unit.as_worker.slots import Job, echo, read_job
from tests.unit.as_worker.world import POOL, World, running

PACKAGES = "0" * 64


@contextmanager
def _asking(world: World) -> Iterator[Callable[[], int]]:
    """Send a request from another thread; the yielded function waits for its status."""
    statuses: list[int] = []
    thread = threading.Thread(target=lambda: statuses.append(world.execute().status))
    thread.start()

    def answered() -> int:
        thread.join(pace.WAIT_S)
        return statuses[0]

    yield answered


def _serve(pid1: socket.socket) -> None:
    connection, _ = pid1.accept()
    with connection:
        connection.settimeout(pace.WAIT_S)
        job = read_job(connection)
        assert job is not None
        echo(job)
        os.close(job.pipe_fd)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with running(tmp_path) as world:
        yield world


def test_a_run_returns_what_its_frames_have(tmp_path: Path) -> None:
    def play(job: Job) -> None:
        job.send(STDOUT, b"out")
        job.send(STDERR, b"err")
        job.send(FILE, b"a.txt\0\xff")
        job.send(VALUE, b"7")
        listed = [{"name": "a.txt", "size": 1}, {"name": "b.bin", "size": 10**9}]
        job.end(status=3, cpu_ms=2, peak_memory_bytes=4096, files=listed, left_out=5)

    with running(tmp_path, play) as world:
        answer = world.execute()
        assert (answer.status, answer.header("Content-Type")) == (200, "application/json")
        result = answer.json()
    assert len(result.pop("run")) == 16
    assert result == {
        "stdout": "out",
        "stderr": "err",
        "exit_code": 3,
        "error": None,
        "truncated": False,
        "duration_ms": 0,
        "killed": False,
        "value": "7",
        "files": [
            {"name": "a.txt", "size": 1, "data": "/w=="},
            {"name": "b.bin", "size": 10**9, "data": None},
        ],
        "left_out": 5,
        "ending": "exit",
        "peak_memory_bytes": 4096,
        "cpu_ms": 2,
        "timeout": 60,
    }


def test_the_supervisor_gets_the_request(tmp_path: Path) -> None:
    limits = RunLimits(at_once=1, seconds=30, cpu_percent=150, output_bytes=100)
    content = base64.b64encode(b"x" * 300_000).decode()  # longer than the socket's buffer
    with running(tmp_path, limits=limits) as world:
        world.execute("1", files={"a": content}, packages=PACKAGES, timeout=99).json()
        request = world.slots[0].jobs.get(timeout=pace.WAIT_S).request
    assert len(request.pop("run")) == 16
    assert request == {
        "code": "1",
        "files": {"a": content},
        "packages": PACKAGES,
        "seconds": 30,  # lowered to the limit
        "output": 1600,
        "cpus": 2,
    }


@pytest.mark.parametrize(("timeout", "in_force"), [(None, 60), (5, 5), (60, 60), (61, 60)])
def test_the_result_reports_the_timeout_in_force(
    world: World, timeout: int | None, in_force: int
) -> None:
    assert world.execute(timeout=timeout).json()["timeout"] == in_force


def test_a_duration_is_believed_up_to_the_time_since_the_request(tmp_path: Path) -> None:
    """The supervisor shares its UID with the code; but it begins before the worker is told."""

    def play(job: Job) -> None:
        job.end(duration_ms=10**9)

    with running(tmp_path, play) as world:
        began_at_s = time.monotonic()
        result = world.execute().json()
        assert 0 <= result["duration_ms"] <= 1000 * (time.monotonic() - began_at_s) + 1


def test_the_journal_has_the_hash_of_the_code(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    run = world.execute("print('canary')").json()["run"]
    digest = sha256(b"print('canary')").hexdigest()
    assert capfd.readouterr().err == (
        f"run {run} of pool notes: code sha256:{digest} 15 bytes, "
        "timeout 60 s, ending exit, exit code 0, 0 ms, truncated no, killed no\n"
    )


def test_output_is_cut_by_the_worker_too(tmp_path: Path) -> None:
    def play(job: Job) -> None:
        job.send(STDOUT, b"a" * 1000)
        job.send(STDERR, b"b" * 100)
        job.end()

    with running(tmp_path, play, RunLimits(at_once=1, output_bytes=100)) as world:
        result = world.execute().json()
    assert result["stdout"] == f"{'a' * 25}\n[900 bytes left out]\n{'a' * 75}"
    assert (result["stderr"], result["truncated"]) == ("b" * 100, True)


def test_a_flood_that_the_supervisor_does_not_end_is_ended(tmp_path: Path) -> None:
    def play(job: Job) -> None:
        for _ in range(20):
            job.send(STDOUT, b"a" * 1024**2)
        job.until_hung_up()

    with running(tmp_path, play, RunLimits(at_once=1, output_bytes=1024**2)) as world:
        result = world.execute().json()
    assert (result["ending"], result["killed"], result["exit_code"]) == ("output", True, 137)
    assert result["error"].startswith("output: 16 MiB reached (16 times runs.output, 1 MiB)")


def test_a_run_that_the_supervisor_does_not_end_in_time_is_ended(tmp_path: Path) -> None:
    def play(job: Job) -> None:
        job.send(STDOUT, b"so far")
        job.until_hung_up()

    timeouts = SlotTimeouts(grace_s=0.2)
    limits = RunLimits(at_once=1, seconds=0)
    with running(tmp_path, play, limits, timeouts=timeouts) as world:
        result = world.execute().json()
    assert (result["ending"], result["killed"], result["stdout"]) == ("timeout", True, "so far")
    assert result["error"].startswith("timeout: 0 s reached (runs.seconds)")


def test_a_run_can_end_its_supervisor(tmp_path: Path) -> None:
    with running(tmp_path, lambda job: job.send(STDOUT, b"so far")) as world:
        result = world.execute().json()
        assert (result["stdout"], result["exit_code"]) == ("so far", 137)
        assert (
            result["error"] == "the run supervisor was killed, by the code or from outside the run"
        )
        assert not result["killed"]
        assert world.execute().status == 200  # the slot is free again


@pytest.mark.parametrize(
    ("slots", "error"),
    [
        (1, "the run slot was removed or stopped by the operator"),
        (2, "the run supervisor was killed"),
    ],
)
def test_a_run_whose_slot_was_removed_has_the_reason(
    tmp_path: Path, slots: int, error: str
) -> None:
    """The request that waits is served by the slot that stays."""
    may_end = threading.Semaphore(0)

    def play(job: Job) -> None:
        assert may_end.acquire(timeout=pace.WAIT_S)
        if job.request["code"] != "second":  # whose supervisor is lost
            echo(job)

    with running(tmp_path, play, RunLimits(at_once=2)) as world:
        streams = []
        for code, state in (("first", "running"), ("second", "running"), ("third", "queued")):
            streams.append(world.stream(code))
            streams[-1].until_state(state)
        world.folder.configure(notes=RunLimits(at_once=slots))
        may_end.release(3)
        results = [each.last()["result"] for each in streams]
        assert [each["stdout"] for each in results] == ["first", "", "third"]
        if slots == 1:
            assert world.slots[1].jobs.qsize() == 1
    assert results[1]["error"].startswith(error)


def test_code_that_could_not_be_started_has_no_result(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path, lambda job: job.end(ending="start", why="no Landlock")) as world:
        answer = world.execute()
        assert (answer.status, answer.json()) == (500, {"error": "start: no Landlock"})
    assert "failed: start: no Landlock; executed no [E-WORKER-SLOT]" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("packages", "failures", "statuses"),
    [
        (PACKAGES, [False, False], [200, 200]),
        (PACKAGES, [False, True, False], [200, 200]),  # the second, in a slot started in advance
        (PACKAGES, [False, True, True], [200, 500]),
        (PACKAGES, [True, False], [500, 200]),  # a slot that was not
        ("", [False, True], [200, 500]),
    ],
)
def test_packages_that_came_after_a_slot_was_started_are_in_the_next_one(
    tmp_path: Path, packages: str, failures: list[bool], statuses: list[int]
) -> None:
    left = iter(failures)

    def play(job: Job) -> None:
        if next(left):
            job.end(ending="start", why="the packages are not in this run slot")
        else:
            echo(job)

    with running(tmp_path, play) as world:
        slot = world.slots[0]
        for expected in statuses:
            assert world.execute(packages=packages).status == expected
            world.until_health(running=0)  # and the next one is started
    assert slot.jobs.qsize() == len(failures)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (HEAD.pack(STDOUT, 2**30), "at most 1048576 are allowed"),
        (frame(b"x", b""), "unknown kind"),
        (frame(FILE, b"../etc/passwd\0x"), "an invalid file name"),
        (frame(FILE, b"a\0x") + frame(END, b'{"ending":"exit","status":0,"duration_ms":0}'),
         "does not list"),
        (frame(VALUE, b"1") * 2, "a second value"),
        (frame(END, b"{}"), "not what it should be"),
    ],
)  # fmt: skip
def test_a_supervisor_that_violates_the_protocol_is_ended(
    tmp_path: Path, data: bytes, problem: str
) -> None:
    def play(job: Job) -> None:
        job.write(data)
        job.until_hung_up()

    with running(tmp_path, play) as world:
        answer = world.execute()
        assert answer.status == 500
        body = answer.json()
    assert body["executed"]
    assert problem in body["error"]


def test_a_second_end_changes_nothing(tmp_path: Path) -> None:
    def play(job: Job) -> None:
        job.end()
        job.end(ending="memory")
        job.write(b"garbage")

    with running(tmp_path, play) as world:
        for _ in range(2):
            assert world.execute().json()["ending"] == "exit"


def test_a_supervisor_that_stays_is_ended_after_its_last_frame(tmp_path: Path) -> None:
    def play(job: Job) -> None:
        job.end()
        job.until_hung_up()

    with running(tmp_path, play) as world:
        for _ in range(2):
            assert world.execute().status == 200


def test_a_slot_is_started_in_advance(world: World) -> None:
    slot = world.slots[0]
    world.execute().json()
    for _ in range(2):
        slot.starts.get(timeout=pace.WAIT_S)  # the second is made without a request
    world.execute().json()
    slot.starts.get(timeout=pace.WAIT_S)
    assert slot.jobs.qsize() == 2


def test_a_slot_that_is_idle_is_ended(tmp_path: Path) -> None:
    timeouts = SlotTimeouts(exit_s=0.0, idle_s=0.01)
    with running(tmp_path, timeouts=timeouts) as world:
        world.execute().json()
        world.slots[0].idle_ends.get(timeout=pace.WAIT_S)
        assert world.execute().status == 200


def test_a_slot_that_was_lost_while_idle_is_replaced(tmp_path: Path) -> None:
    def play(job: Job) -> None:
        worker.slots[0].drops = 1  # the connection that is made in advance
        echo(job)

    with running(tmp_path, play) as worker:
        for _ in range(3):
            assert worker.execute().status == 200
            for _ in range(2):
                worker.slots[0].starts.get(timeout=pace.WAIT_S)
        assert worker.slots[0].jobs.qsize() == 3


def test_a_request_that_was_not_read_is_sent_to_a_new_supervisor(tmp_path: Path) -> None:
    slot_path = tmp_path / "job" / f"{POOL}-0.sock"
    with running(tmp_path, slots=0) as world, socket.socket(socket.AF_UNIX) as pid1:
        pid1.bind(str(slot_path))
        pid1.listen()
        pid1.settimeout(pace.WAIT_S)
        with _asking(world) as answered:
            _serve(pid1)
            assert answered() == 200
        advance, _ = pid1.accept()
        with _asking(world) as answered:
            select.select([advance], [], [], pace.WAIT_S)  # the request has been written
            advance.close()  # unread: the kernel resets the connection
            _serve(pid1)
            assert answered() == 200
        pid1.accept()[0].close()


def test_a_slot_without_a_socket_refuses_the_request_for_a_while(tmp_path: Path) -> None:
    with running(tmp_path, slots=0) as world:
        for _ in range(2):
            answer = world.execute()
            assert (answer.status, answer.header("Retry-After")) == (503, "5")
            path = world.folder.slot()
            assert answer.json() == {
                "error": f"cannot connect to {path}: No such file or directory"
            }


def test_a_unit_that_ends_at_once_fails_without_having_run(tmp_path: Path) -> None:
    with running(tmp_path, slots=1, timeouts=SlotTimeouts(again_s=0.001)) as world:
        world.slots[0].drops = TRIES
        answer = world.execute()
        assert answer.status == 500
        assert answer.json() == {"error": f"the unit of {world.folder.slot()} does not start"}
        assert world.execute().status == 200


def test_a_unit_that_still_stops_is_started_again(world: World) -> None:
    world.slots[0].drops = 3
    assert world.execute().status == 200
    for _ in range(4):
        world.slots[0].starts.get(timeout=pace.WAIT_S)


def test_a_unit_that_does_not_start_fails_without_having_run(tmp_path: Path) -> None:
    timeouts = SlotTimeouts(start_s=0.1)
    with (
        running(tmp_path, slots=0, timeouts=timeouts) as world,
        socket.socket(socket.AF_UNIX) as pid1,
    ):
        pid1.bind(str(world.folder.slot()))
        pid1.listen()
        answer = world.execute()
        assert answer.status == 500
        path = world.folder.slot()
        assert answer.json() == {"error": f"the unit of {path} has not started in 0.1 s"}
