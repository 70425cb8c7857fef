"""Writer of frames to the worker's pipe.

It never blocks while a run goes on: a worker that reads slowly must not keep the run supervisor
from ending the run in time.
"""

import os
import select

from mcpwrap.core.wire.execution import job_frames


class FrameWriter:
    """Writer of frames. The caller puts a frame only if no other one is pending (backpressure)."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._pending = bytearray()

    def fileno(self) -> int:
        """Return the descriptor that becomes writable when the worker has read."""
        return self._fd

    def is_pending(self) -> bool:
        """Return whether a frame waits until the worker has read."""
        return bool(self._pending)

    def put(self, kind: bytes, content: bytes) -> None:
        """Write a frame as far as the pipe has room; the rest is pending.

        Raises:
            BrokenPipeError: the worker has closed the pipe.
        """
        self._pending += job_frames.frame(kind, content)
        self.write()

    def write(self) -> None:
        """Write what is pending, as far as the pipe has room.

        Raises:
            BrokenPipeError: the worker has closed the pipe.
        """
        try:
            while self._pending:
                del self._pending[: os.write(self._fd, self._pending)]
        except BlockingIOError:
            return

    def flush(self) -> None:
        """Wait until all frames are written. The worker may take as long as the unit may run.

        Raises:
            BrokenPipeError: the worker has closed the pipe.
        """
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        while self._pending:
            poll.poll()
            self.write()
