"""Course of a run: each of its endings, and what it leaves."""

import base64
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from mcpwrap.as_job.run_process import SlotFolders
from mcpwrap.core.execution.run_frames import RunFrames
from mcpwrap.core.wire.execution import job_frames
from mcpwrap.core.wire.execution.execute_api import JobEnd, ListedFile
from mcpwrap.core.wire.execution.worker_file import RunLimits
from mcpwrap.linux.isolation import landlock
from tests.unit.as_job.given_request import FIELDS

PROGRAM = Path(__file__).with_name("slot_program.py")
TOP = Path(__file__).parents[3]
SPIN = "import time\nprint('begun')\ndef inner():\n    while True: time.sleep(0.01)\ninner()\n"
LEAVING = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("alive", "w").close()
        time.sleep(60)  # with the pipes of the run
    os._exit(0)
while not os.path.exists("alive"): time.sleep(0.01)
print("parent")
"""
BURNING = """
import os, time
if os.fork() == 0:
    while time.process_time() < 0.2: pass
    open("burnt", "w").close()
    time.sleep(60)
while not os.path.exists("burnt"): time.sleep(0.01)
"""


@dataclass
class Received:
    """Frames that the worker gets."""

    end: JobEnd
    stdout: bytes = b""
    stderr: bytes = b""
    value: bytes | None = None
    files: dict[str, bytes] = field(default_factory=dict)


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    for name in ("tmp", "in", "out", "packages", "run/mcpwrap-job"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def run(root: Path, code: str, *options: str, **fields: object) -> Received:
    """Execute code in a run slot of the test; return what was received."""
    request = json.dumps(FIELDS | {"code": code} | fields).encode()
    done = subprocess.run(
        [sys.executable, PROGRAM, root, *options],
        input=request, capture_output=True, env=os.environ | {"PYTHONPATH": str(TOP)}, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return parsed(done.stdout)


def parsed(frames: bytes) -> Received:
    content_by_kind = {job_frames.STDOUT: b"", job_frames.STDERR: b""}
    value, files = None, {}
    while frames:
        kind, length = job_frames.HEAD.unpack_from(frames)
        content = frames[job_frames.HEAD.size : job_frames.HEAD.size + length]
        frames = frames[job_frames.HEAD.size + length :]
        if kind == job_frames.FILE:
            name, _, files_content = content.partition(b"\0")
            files[name.decode()] = files_content
        elif kind == job_frames.VALUE:
            value = content
        elif kind == job_frames.END:
            assert not frames
            end = msgspec.json.decode(content, type=JobEnd)
            stdout, stderr = content_by_kind.values()
            return Received(end, stdout, stderr, value, files)
        else:
            content_by_kind[kind] += content
    raise AssertionError("no last frame")


@pytest.mark.parametrize(
    ("code", "ending", "status"),
    [
        ("print(1)", "exit", 0),
        ("raise SystemExit(3)", "exit", 3),
        ("1/0", "exit", 1),
        ("import os; os.kill(os.getpid(), 9)", "signal", 9),
        ("import os; os.abort()", "signal", 6),
    ],
)
def test_a_run_ends_by_itself(root: Path, code: str, ending: str, status: int) -> None:
    end = run(root, code).end
    assert (end.ending, end.status, end.why) == (ending, status, "")


def test_output_value_and_files_are_received(root: Path) -> None:
    code = f"""
import os, sys
print(open("{root}/in/data").read(), os.getcwd(), sys.argv, os.environ["USER"])
print("error", file=sys.stderr)
open("{root}/out/result.txt", "w").write("written")
os.symlink("/etc/passwd", "{root}/out/link")
os.mkdir("{root}/out/.hidden")
6 * 7
"""
    received = run(root, code, files={"data": base64.b64encode(b"given").decode()})
    main = f"{root}/tmp/main.py"
    assert received.stdout == f"given {root}/tmp ['{main}'] mcpj-test-0\n".encode()
    assert (received.stderr, received.value) == (b"error\n", b"42")
    assert received.files == {"result.txt": b"written"}
    assert received.end.files == (ListedFile(name="result.txt", size=7),)
    assert received.end.left_out == 2


def test_a_run_that_takes_too_long_shows_its_stacks(root: Path) -> None:
    received = run(root, SPIN, seconds=1)
    assert (received.end.ending, received.end.status) == ("timeout", 9)
    assert received.stdout == b"begun\n"  # what was written before is not lost
    frames = RunFrames(RunLimits())
    frames.feed(job_frames.frame(job_frames.STDERR, received.stderr))
    assert "line 4 in inner" in frames.stderr_text()
    assert b"runner.py" in received.stderr
    assert "runner.py" not in frames.stderr_text()
    assert 1000 <= received.end.duration_ms < 10_000


@pytest.mark.parametrize("fds", [(1,), (2,), (1, 2)])
def test_a_run_that_writes_too_much_is_ended(root: Path, fds: tuple[int, ...]) -> None:
    code = f"import os\nwhile True:\n    for fd in {fds}: os.write(fd, b'x' * 1000)\n"
    received = run(root, code, output=100_000)
    assert (received.end.ending, received.end.status) == ("output", 9)
    assert len(received.stdout) + len(received.stderr) == 100_000


def test_output_up_to_the_limit_is_no_flood(root: Path) -> None:
    received = run(root, "import os; os.write(1, b'x' * 60000)", output=60_000)
    assert (received.end.ending, len(received.stdout)) == ("exit", 60_000)


def test_a_process_that_was_left_does_not_hold_the_run(root: Path) -> None:
    received = run(root, LEAVING)
    assert (received.end.ending, received.stdout) == ("exit", b"parent\n")
    assert received.end.duration_ms < 30_000


def test_processor_time_is_also_that_of_a_process_that_was_left(root: Path) -> None:
    """There is no cgroup here, so its time counts when it has ended."""
    assert run(root, BURNING).end.cpu_ms >= 200


def test_a_run_has_three_descriptors_and_an_environment_of_its_own(root: Path) -> None:
    code = """
import os
print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])  # but that of the folder
print("PYTEST_CURRENT_TEST" in os.environ, os.getsid(0) == os.getpid())
print(open("/proc/self/oom_score_adj").read().strip())
"""
    assert run(root, code).stdout == b"[0, 1, 2]\nFalse True\n1000\n"


@pytest.mark.parametrize(
    ("options", "fields", "why"),
    [
        (("broken",), {}, "cannot start /nonexistent"),
        ((), {"packages": "0" * 64}, "are not in this run slot"),
    ],
)
def test_a_run_that_cannot_start_has_the_reason(
    root: Path, options: tuple[str, ...], fields: dict[str, object], why: str
) -> None:
    received = run(root, "print(1)", *options, **fields)
    assert (received.end.ending, received.stdout) == ("start", b"")
    assert why in received.end.why


@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
def test_a_confined_run_writes_to_its_folders_alone(root: Path) -> None:
    code = """
import socket
try: open("/var/lock/mcpwrap-test", "w")
except PermissionError as error: print(error.errno)
for family in (socket.AF_UNIX, 30):  # 30 is TIPC
    try: print(len(socket.socketpair(family)))
    except OSError as error: print(error.errno)
open("here", "w").write("x")
"""
    assert run(root, code, "confined").stdout == b"13\n2\n1\n"


def test_folders_of_a_slot_are_at_the_root() -> None:
    folders = SlotFolders()
    assert (folders.work, folders.files_in, folders.files_out) == ("/tmp", "/in", "/out")
    assert folders.packages == "/packages/environments"
    assert folders.value == "/run/mcpwrap-job/value"
    assert folders.cgroup == "/sys/fs/cgroup"
