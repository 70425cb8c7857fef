"""Confinement of a run, in a child of a process in the place of the run supervisor."""

import subprocess
import sys

import pytest

# The parent is not confined, as the run supervisor is not; the child reports by its pipe.
TRY = """
import errno, os, resource, signal, socket, subprocess, sys
from mcpwrap.as_job import confinement
read_fd, write_fd = os.pipe()
if os.fork() == 0:
    confinement.enter()
    supervisor, own = os.getppid(), os.getpid()
    try:
        eval(sys.argv[1])
        outcome = "done"
    except OSError as error:
        outcome = errno.errorcode[error.errno]
    os.write(write_fd, outcome.encode())
    os._exit(0)
os.close(write_fd)
os.wait()
sys.stdout.write(os.read(read_fd, 100).decode())
"""


@pytest.mark.parametrize(
    ("expression", "outcome"),
    [
        ("socket.socketpair(socket.AF_INET)", "EPERM"),
        ("socket.socketpair(socket.AF_UNIX)", "done"),
        # With it, a run ends the run supervisor after a second of processor time, or at once.
        ("resource.prlimit(supervisor, resource.RLIMIT_CPU, (1, 1))", "EPERM"),
        ("resource.prlimit(supervisor, resource.RLIMIT_NOFILE)", "EPERM"),
        ("resource.prlimit(own, resource.RLIMIT_NOFILE)", "done"),
        ("resource.setrlimit(resource.RLIMIT_CPU, (100, 100))", "done"),  # 0 is the caller itself
        ("os.sched_setaffinity(supervisor, os.sched_getaffinity(0))", "EPERM"),
        ("os.sched_setaffinity(own, os.sched_getaffinity(0))", "done"),
        ("os.sched_getaffinity(supervisor)", "done"),
        ("open('/usr/bin/env').close()", "done"),
        ("open('/etc/hostname', 'a')", "EACCES"),
    ],
)
def test_a_call_is_refused_where_it_concerns_others(expression: str, outcome: str) -> None:
    command = [sys.executable, "-c", TRY, expression]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == outcome
