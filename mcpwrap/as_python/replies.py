"""Replies to the agent: whole lines, in any order, from several threads."""

import os
import threading

from mcpwrap.core.protocol import strict_json
from mcpwrap.core.protocol.json_value import Json


class ReplyWriter:
    """Writer of lines to one descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._has_reader = True

    def write(self, message: bytes) -> None:
        """Write one message as a line. Without a reader it is dropped: the session ends soon."""
        rest = memoryview(strict_json.on_one_line(message) + b"\n")
        with self._lock:
            try:
                while rest and self._has_reader:
                    rest = rest[os.write(self._fd, rest) :]
            except OSError:  # BrokenPipeError; ENOTCONN and others of a socket
                self._has_reader = False

    def notify(self, method: str, params: Json) -> None:
        """Write a notification."""
        self.write(strict_json.encode({"jsonrpc": "2.0", "method": method, "params": params}))


class ReplyCollector:
    """Replies to the requests of one line: a batch of 2025-03-26 is answered by one line."""

    def __init__(self, writer: ReplyWriter, outstanding: int, *, is_batch: bool) -> None:
        self._writer = writer
        self._outstanding = outstanding
        self._is_batch = is_batch
        self._replies: list[bytes] = []
        self._lock = threading.Lock()

    def add(self, reply: bytes | None) -> None:
        """Add a reply, or None for a request that gets none; the last one writes the line."""
        with self._lock:
            self._outstanding -= 1
            if reply is not None:
                self._replies.append(reply)
            is_complete = self._outstanding == 0 and bool(self._replies)
        if is_complete:
            whole = b",".join(self._replies)
            self._writer.write(b"[" + whole + b"]" if self._is_batch else whole)
