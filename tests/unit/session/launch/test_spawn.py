"""Start of a server in a process that was forked before: the report of a failure."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from mcpwrap.session.launch.spawn import PreparedProcess, Program, ProgramStart, SpawnError

PROGRAM = Program(command="/opt/none", args=[], cwd="/", env={})
# It says that it executes the program; then a signal comes, and only then it reports ENOENT.
PEER = """
import os, signal, socket, struct, sys
fd, handled, caller = map(int, sys.argv[1:])
channel = socket.socket(fileno=fd)
size, _, _ = struct.unpack("III", channel.recv(12))
channel.recv(size)
channel.send(b"+")
while open(f"/proc/{caller}/stat").read().rpartition(") ")[2][0] != "S":
    pass
os.kill(caller, signal.SIGUSR1)
os.read(handled, 1)
channel.send(struct.pack("ii", 3, 2))
"""


@pytest.fixture
def handled() -> Iterator[int]:
    """Handle SIGUSR1; return a descriptor from which each can be read once."""
    read_fd, write_fd = os.pipe()
    former = signal.signal(signal.SIGUSR1, lambda *_: os.write(write_fd, b"."))
    yield read_fd
    signal.signal(signal.SIGUSR1, former)
    os.close(read_fd)
    os.close(write_fd)


def test_a_signal_before_the_report_hides_no_failure(handled: int) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        argv = [sys.executable, "-c", PEER, str(theirs.fileno()), str(handled), str(os.getpid())]
        peer = subprocess.Popen(argv, pass_fds=(theirs.fileno(), handled))
    with peer, pytest.raises(SpawnError, match="cannot start /opt/none: No such file"):
        PreparedProcess(peer.pid, ours).run(ProgramStart(PROGRAM, [], 0o077))
    assert peer.returncode == 0
