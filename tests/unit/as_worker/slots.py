"""Stand-in of run slots: PID 1's socket and a supervisor in a thread, which speaks job frames."""

import json
import os
import queue
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpwrap.core.wire.execution import job_frames
from mcpwrap.core.wire.execution.job_frames import END, STDOUT, frame
from mcpwrap.linux.unix_socket import fd_passing
from tests.shared import pace


@dataclass
class Job:
    """One request, as its supervisor has received it."""

    request: dict[str, Any]
    connection: socket.socket
    pipe_fd: int

    def send(self, kind: bytes, content: bytes) -> None:
        self.write(frame(kind, content))

    def write(self, data: bytes) -> None:
        """Write to the pipe; a worker that has ended the run reads no more."""
        with suppress(BrokenPipeError):
            while data:
                data = data[os.write(self.pipe_fd, data) :]

    def end(self, **more: Any) -> None:
        content = {"ending": "exit", "status": 0, "duration_ms": 0} | more
        self.send(END, json.dumps(content).encode())

    def until_hung_up(self) -> None:
        assert self.connection.recv(1) == b""


Play = Callable[[Job], None]


def echo(job: Job) -> None:
    """Print the code, and end."""
    job.send(STDOUT, job.request["code"].encode())
    job.end()


@dataclass
class Slot:
    """Socket of one slot. As with `Accept=no`, one connection is served after another."""

    path: Path
    play: Play = echo
    starts: "queue.Queue[None]" = field(default_factory=queue.Queue)  # connections accepted
    jobs: "queue.Queue[Job]" = field(default_factory=queue.Queue)
    idle_ends: "queue.Queue[None]" = field(default_factory=queue.Queue)  # without a request
    failures: list[BaseException] = field(default_factory=list)
    drops: int = 0  # connections that are closed as soon as they are accepted

    def __post_init__(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(pace.WAIT_S)
        self._listener.close()
        assert not self._thread.is_alive()
        assert self.failures == []

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(pace.WAIT_S)
                self.starts.put(None)
                if self.drops:
                    self.drops -= 1
                    continue
                try:
                    self._serve_one(connection)
                except BaseException as error:  # noqa: BLE001 - for the thread of the test
                    self.failures.append(error)

    def _serve_one(self, connection: socket.socket) -> None:
        job = read_job(connection)
        if job is None:
            self.idle_ends.put(None)
            return
        try:
            self.jobs.put(job)
            self.play(job)
        finally:
            os.close(job.pipe_fd)


def read_job(connection: socket.socket) -> Job | None:
    """Return the request of a connection; None if it is closed without one."""
    head, fds = fd_passing.receive(connection, job_frames.LENGTH.size)
    if not head:
        return None
    (length,) = job_frames.LENGTH.unpack(head)
    text = b""
    while len(text) < length:
        text += connection.recv(length - len(text))
    return Job(json.loads(text), connection, fds[0])
