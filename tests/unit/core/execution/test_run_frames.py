"""Frames of a run: what is taken from a supervisor, and each violation that is refused."""

import json
from typing import Any

import pytest

from mcpwrap.core.execution.run_frames import FrameError, RunFrames
from mcpwrap.core.wire.execution import job_frames
from mcpwrap.core.wire.execution.execute_api import OutFile
from mcpwrap.core.wire.execution.job_frames import END, FILE, HEAD, STDERR, STDOUT, VALUE, frame
from mcpwrap.core.wire.execution.worker_file import RunLimits

LIMITS = RunLimits(output_bytes=1000)
MIB = 1024**2


def end(*files: tuple[str, int], **more: Any) -> bytes:
    listed = [{"name": name, "size": size} for name, size in files]
    content = {"ending": "exit", "status": 0, "duration_ms": 5, "files": listed} | more
    return frame(END, json.dumps(content).encode())


def fed(*pieces: bytes) -> RunFrames:
    frames = RunFrames(LIMITS)
    for piece in pieces:
        frames.feed(piece)
    return frames


def test_a_run_is_recorded() -> None:
    frames = fed(
        frame(STDOUT, b"one\n") + frame(STDERR, b"two\n"),
        frame(STDOUT, b"three\n"),
        frame(FILE, b"a.txt\0content") + frame(VALUE, "ä".encode()),
        end(("a.txt", 7), ("long.bin", 9 * MIB), peak_memory_bytes=4096, cpu_ms=3),
    )
    assert (frames.stdout.text(), frames.stderr.text()) == ("one\nthree\n", "two\n")
    assert frames.recent.text() == "one\ntwo\nthree\n"
    assert frames.value == "ä"
    assert frames.end is not None
    assert (frames.end.status, frames.end.peak_memory_bytes) == (0, 4096)
    assert frames.out_files() == (
        OutFile(name="a.txt", size=7, data="Y29udGVudA=="),
        OutFile(name="long.bin", size=9 * MIB),  # listed, and not kept
    )


RUNNER = '  File "/usr/lib/mcpwrap/mcpwrap/as_job/runner.py", line'
OWN = '  File "/tmp/main.py", line 2 in <module>\n'


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (f"Current thread 0x0:\n{OWN}{RUNNER} 47 in main\n{RUNNER} 171 in <module>\n",
         f"Current thread 0x0:\n{OWN}"),
        (OWN, OWN),
        (f"{RUNNER} 47, in main\n", f"{RUNNER} 47, in main\n"),  # of a traceback
        (OWN.replace("main", "runner"), OWN.replace("main", "runner")),  # a file of the code's own
    ],
)  # fmt: skip
def test_stacks_end_with_the_code_s_own_frames(written: str, shown: str) -> None:
    assert fed(frame(STDERR, written.encode())).stderr_text() == shown


def test_text_that_is_almost_a_stack_is_read_once() -> None:
    """A search that tried each part with each other would take an hour."""
    text = '  File "' + '/mcpwrap/as_job/runner.py", line 1 in ' * 100_000
    frames = RunFrames(RunLimits(output_bytes=4 * MIB))
    for begin in range(0, len(text), MIB):
        frames.feed(frame(STDERR, text[begin : begin + MIB].encode()))
    assert frames.stderr_text() == text


def test_pieces_may_end_anywhere() -> None:
    whole = frame(STDOUT, b"abc") + frame(FILE, b"f\0\0\xff") + end(("f", 2))
    frames = fed(*(bytes([one]) for one in whole))
    assert (frames.stdout.text(), frames.out_files()[0].data) == ("abc", "AP8=")
    assert frames.end is not None


def test_a_run_that_sends_nothing_has_not_begun() -> None:
    assert not fed().has_begun
    assert fed(b"o").has_begun
    assert fed().out_files() == ()


def test_nothing_follows_the_end() -> None:
    frames = fed(end() + frame(STDOUT, b"late"), end(ending="memory"), b"garbage" * 9)
    assert (frames.stdout.text(), frames.end and frames.end.ending) == ("", "exit")


def test_output_is_cut_and_a_flood_is_noticed() -> None:
    frames = fed(frame(STDOUT, b"x" * 1000), frame(STDERR, b"y" * 1000))
    assert not frames.is_truncated
    frames.feed(frame(STDERR, b"y"))
    assert (frames.is_truncated, frames.is_flooded) == (True, False)
    frames.feed(frame(STDOUT, b"x" * MIB))
    assert not frames.is_flooded  # the supervisor ends the run at 16 times the limit
    frames.feed(frame(STDERR, b"y" * 16 * 1000))
    assert frames.is_flooded


@pytest.mark.parametrize(
    ("pieces", "problem"),
    [
        ([b"x\0\0\0\0"], "unknown kind b'x'"),
        ([b"\0\0\0\0\0"], "unknown kind"),
        ([HEAD.pack(STDOUT, MIB + 1)], "at most 1048576 are allowed"),
        ([HEAD.pack(FILE, job_frames.MAX_FRAME_BYTES + 1)], "at most"),
        ([HEAD.pack(VALUE, job_frames.MAX_VALUE_BYTES + 1)], "at most"),
        ([HEAD.pack(END, 2**32 - 1)], "at most"),
        ([frame(VALUE, b"1"), frame(VALUE, b"2")], "a second value"),
        ([frame(FILE, b"name")], "without content"),
        ([frame(FILE, b"a\0"), frame(FILE, b"a\0")], "for the second time"),
        ([frame(FILE, b"\0x")], "an invalid file name"),
        ([frame(FILE, b"../x\0x")], "an invalid file name"),
        ([frame(FILE, b".x\0x")], "an invalid file name"),
        ([frame(FILE, b"\x1b[2J\0x")], "an invalid file name"),
        ([frame(FILE, b"n" * 256 + b"\0x")], "an invalid file name"),
        ([frame(FILE, b"\xff\0x")], "not UTF-8"),
        ([frame(FILE, b"a\0" + b"x" * (8 * MIB + 1))], "a file of 8388609 bytes"),
        ([frame(FILE, b"%d\0" % one) for one in range(33)], "more files"),
        ([frame(FILE, b"%d\0" % one + b"x" * 6 * MIB) for one in range(3)], "longer ones"),
        ([frame(FILE, b"a\0x"), end()], "does not list"),
        ([frame(FILE, b"a\0x"), end(("a", 2))], "does not list"),
        ([end(("a", 1), ("a", 1))], "lists a file twice"),
        ([end(("/etc/x", 1))], "invalid name"),
        ([end(("a", -1))], "not what it should be"),
        ([end(*((str(one), 1) for one in range(33)))], "not what it should be"),
        ([end(status=256)], "not what it should be"),
        ([end(ending="won")], "not what it should be"),
        ([end(more=1)], "not what it should be"),
        ([end(why="x" * 1001)], "not what it should be"),
        ([end(duration_ms=2**53 + 1)], "a number that is too large"),
        ([end(left_out=2**53 + 1)], "a number that is too large"),
        ([frame(STDOUT, b"x"), end(ending="start")], "not started"),
        ([frame(VALUE, b"x"), end(ending="start")], "not started"),
        ([frame(FILE, b"a\0x"), end(("a", 1), ending="start")], "not started"),
        ([end(left_out=-1)], "not what it should be"),
        ([end(("a", 2**60))], "a number that is too large"),
        ([frame(END, b"")], "not what it should be"),
        ([frame(END, b"[" * 60_000)], "not what it should be"),
        ([frame(END, b'{"ending": "\xff"}')], "not what it should be"),
    ],
)
def test_a_violation_is_refused(pieces: list[bytes], problem: str) -> None:
    with pytest.raises(FrameError, match=problem):
        fed(*pieces)


def test_thirty_two_files_of_sixteen_mebibytes_are_taken() -> None:
    contents = [(f"{one}", b"x" * (MIB // 2)) for one in range(32)]
    frames = fed(
        *(frame(FILE, name.encode() + b"\0" + data) for name, data in contents),
        end(*((name, len(data)) for name, data in contents)),
    )
    assert len(frames.out_files()) == 32
