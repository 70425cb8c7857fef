"""Bounded write queue (backpressure) of a descriptor with two writers.

Neither writer waits for the other's reader.
"""

import os
import threading
from collections import deque
from collections.abc import Callable

from mcpwrap.session.relay import copy

MAX_PUT = 256  # queued refusals; over this the thread that adds one waits for the reader


class MessageWriter:
    """Queue of whole messages, written in turn. After a write error all are dropped."""

    def __init__(self, fd: int, when_broken: Callable[[], None]) -> None:
        self._fd = fd
        self._when_broken = when_broken
        self._is_open = True
        self._turn = threading.Lock()
        self._waiting: deque[bytes] = deque()

    def write(self, data: bytes) -> None:
        """Write, blocking if the reader is slow: for the stream that leads to this descriptor."""
        with self._turn:
            if self._waiting:
                self._flush()
            self._write(data)
        if self._waiting:
            self._catch_up()

    def put(self, data: bytes) -> None:
        """Write, or queue for the thread that is writing: for replies to the other stream's sender.

        If this blocked, the sender's stream would not be read until it reads its replies.
        """
        self._waiting.append(data)
        if len(self._waiting) > MAX_PUT:
            with self._turn:
                self._flush()
        self._catch_up()

    def close(self) -> None:
        """Write the queue, and close."""
        with self._turn:
            self._flush()
            if self._is_open:
                self._is_open = False
                os.close(self._fd)

    def _catch_up(self) -> None:
        """Write what was queued after the writing thread had last looked at the queue."""
        while self._waiting and self._turn.acquire(blocking=False):
            try:
                self._flush()
            finally:
                self._turn.release()

    def _flush(self) -> None:
        while self._waiting:
            self._write(self._waiting.popleft())

    def _write(self, data: bytes) -> None:
        if not self._is_open:
            return
        try:
            copy.write(self._fd, data)
        except OSError:
            self._is_open = False
            os.close(self._fd)
            self._when_broken()
