"""Waiting for the end of a child, with signals in between."""

import subprocess
import sys

import pytest

from tests.shared import pace

# The signal arrives before the wait: a Python handler would run too late.
PENDING = """
import os, signal
from mcpwrap.linux.process import child_exit
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})
pid = os.fork()
if pid == 0:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.pause()
os.kill(os.getpid(), signal.SIGTERM)
print(child_exit.await_end(pid, {signal.SIGTERM}, lambda number: os.kill(pid, number)))
"""
# Another child ends first: it is reaped, and not mistaken for the awaited one.
SEVERAL = """
import os, signal
from mcpwrap.linux.process import child_exit
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
read_fd, write_fd = os.pipe()
other = os.fork()
if other == 0:
    os._exit(3)
pid = os.fork()
if pid == 0:
    os.close(write_fd)
    os.read(read_fd, 1)
    os._exit(7)
os.waitid(os.P_PID, other, os.WEXITED | os.WNOWAIT)
os.close(write_fd)
status = child_exit.await_end(pid, (), print)
try:
    os.waitpid(other, 0)
except ChildProcessError:
    print(status)
"""


@pytest.mark.parametrize(("code", "said"), [(PENDING, "143\n"), (SEVERAL, "7\n")])
def test_the_end_of_the_child_is_awaited(code: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=pace.WAIT_S
    )
    assert (done.stdout, done.stderr) == (said, "")
