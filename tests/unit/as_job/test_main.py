"""Entry point of a run slot: the kernel ends it when the worker hangs up."""

import signal
import socket
import subprocess
import sys

import pytest

ARMED = """
import os, signal, socket, sys
from mcpwrap.as_job.main import end_with
connection = socket.socket(fileno=int(sys.argv[1]))
end_with(connection)
print("armed", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)  # as a run may do to it
"""


@pytest.mark.parametrize("ending", ["hang-up", "more than the request"])
def test_a_stopped_process_ends_with_its_connection(ending: str) -> None:
    worker, connection = socket.socketpair()
    with worker, connection, _armed(connection) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"armed\n"
        connection.close()
        if ending == "hang-up":
            worker.close()
        else:
            worker.sendall(b"x")
        assert process.wait(timeout=30) == -signal.SIGKILL


def test_a_hang_up_before_is_noticed() -> None:
    worker, connection = socket.socketpair()
    worker.close()
    with connection, _armed(connection) as process:
        assert process.wait(timeout=30) == -signal.SIGKILL
        assert process.stdout is not None
        assert process.stdout.read() == b""


def _armed(connection: socket.socket) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", ARMED, str(connection.fileno())],
        pass_fds=[connection.fileno()], stdout=subprocess.PIPE,
    )  # fmt: skip
