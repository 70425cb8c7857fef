"""Signals arrive as bytes where poll(2) sees them, and a forked child is free of that."""

import signal
import subprocess
import sys

import pytest

from tests.shared import pace

NUMBERS = [signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP]
LISTEN = """
import os, select, signal
from mcpwrap.linux import wakeup

read_fd = wakeup.on_signals()
"""


def run(program: str, *args: object) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own: it changes how the process takes signals."""
    command = [sys.executable, "-c", LISTEN + program, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=pace.WAIT_S)


ARRIVES = """
import sys
assert select.select([read_fd], [], [], 0)[0] == []
os.kill(os.getpid(), int(sys.argv[1]))
assert select.select([read_fd], [], [], 9)[0] == [read_fd]
print(list(os.read(read_fd, 99)))
"""


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_is_a_byte(number: signal.Signals) -> None:
    done = run(ARRIVES, int(number))
    assert (done.stdout, done.stderr, done.returncode) == (f"[{int(number)}]\n", "", 0)


MANY = """
for _ in range(70_000):  # a pipe holds 65 536
    os.kill(os.getpid(), signal.SIGHUP)
print(len(os.read(read_fd, 99_999)))
"""


def test_more_signals_than_fit_do_no_harm() -> None:
    done = run(MANY)
    assert (done.stderr, done.returncode) == ("", 0)
    assert int(done.stdout) > 1000


CHILD = """
import sys
pid = os.fork()
if pid == 0:
    wakeup.off()
    os.kill(os.getpid(), int(sys.argv[1]))
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

print(list(os.read(read_fd, 99)))
"""


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, -15), (signal.SIGHUP, -1), (signal.SIGCHLD, 7)]
)
def test_a_child_ends_by_its_own_signals_and_they_are_not_ours(
    number: signal.Signals, status: int
) -> None:
    done = run(CHILD, int(number))
    assert (done.stdout, done.stderr) == (f"{status}\n[{int(signal.SIGCHLD)}]\n", "")


def test_no_program_inherits_the_descriptor() -> None:
    done = run("print(os.get_inheritable(read_fd), os.get_blocking(read_fd))")
    assert done.stdout == "False False\n"
