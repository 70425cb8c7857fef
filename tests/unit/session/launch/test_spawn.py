"""Start of a server in a process that was forked before: reports of its view and of a failure."""

import dataclasses
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from mcpwrap.linux.unix_socket import fd_passing
from mcpwrap.session.launch.spawn import (
    PreparedProcess,
    Program,
    ProgramStart,
    SpawnError,
    StartingProcess,
)

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

# It reports a view, with a descriptor, and then says what comes next; or it ends within the report.
VIEWING_PEER = """
import os, socket, struct, sys
channel = socket.socket(fileno=int(sys.argv[1]))
size, _, _ = struct.unpack("III", channel.recv(12))
channel.recv(size)
socket.send_fds(channel, [b"="], [os.pipe()[0]])
channel.send(eval(sys.argv[2]))
"""
REPORTED = "struct.pack('I', 4) + b'seen'"


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


def began(then: str) -> tuple[StartingProcess, subprocess.Popen[bytes]]:
    """Give a peer the program; return what it says of its view, and the peer."""
    ours, theirs = socket.socketpair()
    with theirs:
        argv = [sys.executable, "-c", VIEWING_PEER, str(theirs.fileno()), then]
        peer = subprocess.Popen(argv, pass_fds=[theirs.fileno()])
    with peer:
        return PreparedProcess(peer.pid, ours).begin(ProgramStart(PROGRAM, [], 0o077)), peer


@pytest.mark.parametrize(
    ("then", "said"),
    [
        (f"{REPORTED} + b'+'", ""),  # the program is executed
        (REPORTED, "has ended"),
        (f"{REPORTED} + b'+' + struct.pack('ii', 3, 13)", "cannot start /opt/none: Permission"),
        (f"{REPORTED} + struct.pack('ii', 2, 2)", "cannot enter /: No such file"),
    ],
)
def test_the_view_is_reported_before_the_program_is_executed(then: str, said: str) -> None:
    starting, _ = began(then)
    assert starting.view.report == b"seen"
    for fd in starting.view.fds:
        os.close(fd)
    assert len(starting.view.fds) == 1
    with pytest.raises(SpawnError, match=said) if said else nullcontext():
        starting.await_start()


@pytest.mark.parametrize("then", ["b''", "struct.pack('I', 4)", "struct.pack('I', 4) + b'see'"])
def test_a_process_that_ends_within_its_report_leaves_no_descriptor(then: str) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(SpawnError, match="has ended"):
        began(then)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_time_to_start_is_that_of_all_steps_together() -> None:
    """It has used up its time for the view, and then it hangs."""
    ours, theirs = socket.socketpair()
    with theirs:
        fd_passing.send(theirs, b"=", [])
        theirs.sendall(struct.pack("I", 4) + b"seen")
        starting = PreparedProcess(0, ours).begin(ProgramStart(PROGRAM, [], 0o077))
        late = dataclasses.replace(starting, _give_up_at_s=time.monotonic())
        with pytest.raises(SpawnError, match="has not started within 20 s"):
            late.await_start()
