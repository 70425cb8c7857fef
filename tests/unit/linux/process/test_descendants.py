"""Killing all descendants of a process, daemons too."""

import subprocess
import sys

from tests.shared import pace

TREE = """
import os, signal, time
from mcpwrap.linux.process import descendants
from mcpwrap.linux.isolation import prctl
prctl.adopt_orphans()
read_fd, write_fd = os.pipe()
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.write(write_fd, b"x")
    time.sleep(1000)
os.read(read_fd, 1)
os.close(write_fd)
descendants.end_all()
assert os.read(read_fd, 1) == b""  # all that had the other end are gone
print("all")
"""


def test_daemons_are_killed_too() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TREE], capture_output=True, text=True, timeout=pace.WAIT_S
    )
    assert (done.stdout, done.stderr) == ("all\n", "")


def test_other_processes_are_not_killed() -> None:
    code = "from mcpwrap.linux.process import descendants; descendants.end_all()"
    with subprocess.Popen(["sleep", "1000"]) as sibling:
        subprocess.run([sys.executable, "-c", code], check=True, timeout=pace.WAIT_S)
        assert sibling.poll() is None
        sibling.kill()
