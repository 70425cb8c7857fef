"""Child process: bounded in time and output, and nothing of it outlives the call."""

import os
import select
import signal
from pathlib import Path

import pytest

from mcpwrap.as_python.packages import child_process
from mcpwrap.as_python.packages.child_process import ChildCommand, ChildResult


def shell(script: str, timeout_s: float = 60.0) -> ChildCommand:
    return ChildCommand(
        argv=["/bin/sh", "-c", script],
        environ={"PATH": "/usr/bin:/bin", "GIVEN": "yes"},
        folder=Path("/"),
        timeout_s=timeout_s,
    )


def no_tick() -> None:
    pass


def has_ended(pid: int) -> bool:
    """Wait for the end of a process that was killed; its parent may have yet to reap it."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pidfd], [], [], 30.0)[0])
    finally:
        os.close(pidfd)


@pytest.mark.parametrize(
    ("script", "result"),
    [
        ("echo a; echo b >&2; exit 3", (3, "a\n", "b\n")),
        ("cat", (0, "", "")),  # its standard input is empty
        ("umask; echo $GIVEN $HOME; pwd", (0, "0077\nyes\n/\n", "")),
        ("kill -9 $$", (-9, "", "")),
        (r"printf '\377'", (0, "\N{REPLACEMENT CHARACTER}", "")),
    ],
)
def test_a_child_has_a_status_and_output(script: str, result: tuple[int, str, str]) -> None:
    status, stdout, stderr = result
    assert child_process.run(shell(script), no_tick) == ChildResult(
        status=status, is_timeout=False, stdout=stdout, stderr=stderr
    )


def test_a_child_that_does_not_exist_is_an_os_error() -> None:
    command = ChildCommand(argv=["/no/such"], environ={}, folder=Path("/"), timeout_s=1.0)
    with pytest.raises(FileNotFoundError):
        child_process.run(command, no_tick)


def test_output_is_read_to_its_end_and_kept_to_its_bound() -> None:
    result = child_process.run(shell("head -c 9000000 /dev/zero; echo end >&2"), no_tick)
    assert len(result.stdout) == child_process.MAX_OUTPUT_BYTES
    assert result.stderr == "end\n"


def test_a_grandchild_neither_delays_the_end_nor_outlives_it() -> None:
    result = child_process.run(shell("sleep 1000 & echo $!"), no_tick)
    assert not result.is_timeout
    assert has_ended(int(result.stdout))


def test_the_time_limit_ends_the_group() -> None:
    result = child_process.run(shell("trap '' TERM; sleep 1000 & echo $!; wait", 0.5), no_tick)
    assert (result.is_timeout, result.status) == (True, -signal.SIGKILL)
    assert has_ended(int(result.stdout))


class StopError(Exception):
    pass


def test_an_exception_of_the_callback_ends_the_group(tmp_path: Path) -> None:
    def on_tick() -> None:
        raise StopError

    script = f"sleep 1000 & echo $! > {tmp_path}/pid; wait"
    with pytest.raises(StopError):
        child_process.run(shell(script), on_tick)
    assert has_ended(int((tmp_path / "pid").read_text()))
