"""Bounded send queue of lines for a server that may not be reading (backpressure)."""

import asyncio
from collections import deque

_MAX_WAITING = 4  # lines; then agents wait


class ClosedError(Exception):
    """Error for a queue that is closed."""


class SendQueue:
    """Bounded queue. A line is in it whole or not at all, whichever end gives up."""

    def __init__(self, max_waiting: int = _MAX_WAITING) -> None:
        self._lines: deque[bytes] = deque()
        self._max_waiting = max_waiting
        self._has_room, self._has_some = asyncio.Event(), asyncio.Event()
        self._is_closed = False

    async def put(self, line: bytes) -> None:
        """Put one in, once there is room.

        Raises:
            ClosedError: it is closed, or was while we waited.
        """
        while len(self._lines) >= self._max_waiting and not self._is_closed:
            self._has_room.clear()
            await self._has_room.wait()
        if self._is_closed:
            raise ClosedError
        self._lines.append(line)
        self._has_some.set()

    async def take(self) -> bytes:
        """Return the next one; empty once it is closed and all were taken."""
        while not self._lines and not self._is_closed:
            self._has_some.clear()
            await self._has_some.wait()
        if not self._lines:
            return b""
        self._has_room.set()
        return self._lines.popleft()

    def close(self) -> None:
        """Take nothing more in. What is in it can still be taken out."""
        self._is_closed = True
        self._has_room.set()
        self._has_some.set()
