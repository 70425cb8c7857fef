"""Exchange with the program of a next version, over its standard streams and within bounds."""

import os
import select
import sys
import time
from dataclasses import dataclass
from typing import Self

from mcpwrap.as_wrapper.next_version.definitions_client import DefinitionsClient
from mcpwrap.core.protocol.framing import LineBuffer
from mcpwrap.core.wire.next_version_pipe import (
    MAX_PAGES_BYTES,
    MAX_STDERR_BYTES,
    NextVersionAnswer,
)

TIMEOUT_S = 180.0  # npx and uvx download the version first
_LAST_OUTPUT_S = 1.0  # of a redactor, when the program has ended
_CHUNK_BYTES = 64 * 1024
_MAX_OUTPUT_BYTES = MAX_PAGES_BYTES + 1024 * 1024  # also of lines that are not messages


@dataclass(frozen=True, slots=True)
class ServerPipes:
    """Pipes to a program: our ends of its standard streams, and its own ends."""

    to_server: int
    from_server: int
    stderr: int
    theirs: list[int]

    @classmethod
    def new(cls) -> Self:
        """Make the pipes. A program that does not read blocks nothing."""
        theirs_0, to_server = os.pipe2(os.O_CLOEXEC)
        from_server, theirs_1 = os.pipe2(os.O_CLOEXEC)
        stderr, theirs_2 = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(to_server, False)
        return cls(to_server, from_server, stderr, [theirs_0, theirs_1, theirs_2])


class DefinitionsReader:
    """Reader of all definitions of a program. Its requester can hang up meanwhile."""

    def __init__(self, pipes: ServerPipes, requester_fd: int) -> None:
        self._pipes = pipes
        self._requester_fd = requester_fd
        self._client = DefinitionsClient()
        self._lines = LineBuffer(_MAX_OUTPUT_BYTES)
        self._bytes = 0
        self._stderr = b""
        self._problem = ""

    def read(self, timeout_s: float = TIMEOUT_S) -> None:
        """Talk to the program until all is read, or cannot be.

        Raises:
            SystemExit: the requester is gone.
        """
        poll = select.poll()
        poll.register(self._requester_fd, 0)  # POLLHUP alone
        for fd in (self._pipes.from_server, self._pipes.stderr):
            poll.register(fd, select.POLLIN)
        due_s = time.monotonic() + timeout_s
        self._send([self._client.begin()])
        while not (self._client.is_done or self._problem):
            ready = dict(poll.poll(max(due_s - time.monotonic(), 0) * 1000))
            if self._requester_fd in ready:
                sys.exit(0)  # no process waits for an answer
            if not ready or time.monotonic() >= due_s:
                self._problem = f"no answer to {self._client.awaited} in {timeout_s:g} s"
            if self._pipes.stderr in ready and not self._read_stderr():
                poll.unregister(self._pipes.stderr)
            if self._pipes.from_server in ready:
                self._read_messages()

    def read_last_output(self) -> None:
        """Read what is left on standard error of a program that has ended."""
        os.close(self._pipes.to_server)
        poll = select.poll()
        poll.register(self._pipes.stderr, select.POLLIN)
        while poll.poll(_LAST_OUTPUT_S * 1000) and self._read_stderr():
            pass

    def answer(self) -> NextVersionAnswer:
        """Return what was read."""
        problem = self._client.problem or self._problem
        return NextVersionAnswer(
            pages=tuple(self._client.pages),
            problem=problem,
            stderr=self._stderr.decode(errors="replace") if problem else "",
        )

    def _read_stderr(self) -> bool:
        chunk = os.read(self._pipes.stderr, _CHUNK_BYTES)
        self._stderr = (self._stderr + chunk)[-MAX_STDERR_BYTES:]
        return bool(chunk)

    def _read_messages(self) -> None:
        chunk = os.read(self._pipes.from_server, _CHUNK_BYTES)
        if not chunk:
            self._problem = f"it has ended before it answered {self._client.awaited}"
            return
        self._bytes += len(chunk)
        if self._bytes > _MAX_OUTPUT_BYTES:
            self._problem = f"it wrote over {_MAX_OUTPUT_BYTES} bytes"
            return
        lines = self._lines.feed(chunk)
        for line in bytes(lines).split(b"\n")[:-1]:
            if self._client.is_done:
                return
            self._send(self._client.take(line))

    def _send(self, lines: list[bytes]) -> None:
        for line in lines:
            try:
                is_sent = os.write(self._pipes.to_server, line) == len(line)
            except BlockingIOError:
                is_sent = False
            except BrokenPipeError:
                return  # it has closed its input; that it ends is noticed next
            if not is_sent:
                self._problem = "it does not read its input"
