"""Bounded write queue (backpressure) of a descriptor with two writers.

Neither writer waits for the other's reader.
"""

import os
import threading
from collections import deque
from collections.abc import Callable

from mcpwrap.session.relay import copy

MAX_PUT = 256  # refusals that wait for a reader; beyond, whoever is refused waits too


class MessageWriter:
    """Queue of whole messages, written in turn. After a write error all are dropped."""

    def __init__(self, fd: int, when_broken: Callable[[], None]) -> None:
        self._fd = fd
        self._when_broken = when_broken
        self._is_open = True
        self._turn = threading.Lock()
        self._waiting: deque[bytes] = deque()

    def write(self, data: bytes) -> None:
        """Write, waiting where the reader is slow: the stream whose sink this is."""
        with self._turn:
            if self._waiting:
                self._flush()
            self._write(data)
        if self._waiting:
            self._catch_up()

    def put(self, data: bytes) -> None:
        """Write, or leave it to whoever is writing: an answer to the other stream's sender.

        A sender that is not read from would otherwise not be able to read either.
        """
        self._waiting.append(data)
        if len(self._waiting) > MAX_PUT:
            with self._turn:
                self._flush()
        self._catch_up()

    def close(self) -> None:
        """Write what waits, and close."""
        with self._turn:
            self._flush()
            if self._is_open:
                self._is_open = False
                os.close(self._fd)

    def _catch_up(self) -> None:
        """Write what was put while the turn was another's, who had looked already."""
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
