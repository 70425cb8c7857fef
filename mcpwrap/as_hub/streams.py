"""Streams of a hub: descriptors that do not block, with lines in and queued bytes out."""

import os
from collections import deque

from mcpwrap.core.protocol.framing import LineBuffer

_CHUNK_BYTES = 64 * 1024


class LineReader:
    """Reader of the lines of a descriptor."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self._buffer = LineBuffer()

    def read(self) -> list[bytes] | None:
        """Return the lines that one read completes; None at the end of the stream.

        One read alone: all streams get their turn, however much one of them has.

        Raises:
            LineTooLongError: a line is over the bound.
        """
        try:
            chunk = os.read(self.fd, _CHUNK_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not chunk:
            return None
        return [line for line in bytes(self._buffer.feed(chunk)).split(b"\n") if line]


class QueuedWriter:
    """Writer with a queue for what its reader has not taken yet."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.queued_bytes = 0
        self.is_broken = False
        self._queue: deque[memoryview] = deque()

    def write(self, line: bytes) -> None:
        """Write a line, or queue what the reader does not take at once."""
        if self.is_broken:
            return
        self._queue.append(memoryview(line))
        self.queued_bytes += len(line)
        if len(self._queue) == 1:
            self.flush()

    def flush(self) -> None:
        """Write from the queue until the reader takes no more."""
        try:
            while self._queue:
                written = os.write(self.fd, self._queue[0])
                self.queued_bytes -= written
                rest = self._queue[0][written:]
                if rest:
                    self._queue[0] = rest
                    return
                self._queue.popleft()
        except BlockingIOError:
            return
        except OSError:  # EPIPE: there is no reader any more
            self.is_broken = True
            self._queue.clear()
            self.queued_bytes = 0

    def close(self) -> None:
        """Close the descriptor, so that the reader sees the end."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        self.is_broken = True
