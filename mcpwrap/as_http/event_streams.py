"""Event queue of one HTTP response stream, also for a reader that reconnects later."""

import asyncio
from collections import deque

from mcpwrap.core.http.event_history import StreamEvent

# Beyond these the writer waits for the reader; without a reader the oldest event is dropped.
MAX_AHEAD = 256
MAX_AHEAD_BYTES = 1024 * 1024
_LEAVES_WITHIN_S = 0.5  # time in which a reader leaves whose connection has ended


class BusyError(Exception):
    """Error for a stream that has a reader already."""


class Stream:
    """Queue of unread events, with backpressure. One reader at a time."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_over = False  # no more events will follow
        self.has_reader = False
        self._is_paused = False
        self.told = 0  # the number of the last event that was read
        self._events: deque[StreamEvent] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()

    async def put(self, event: StreamEvent) -> None:
        """Add an event, and wait until its reader is within the bounds."""
        self._events.append(event)
        self._bytes += len(event.json)
        self._change()
        while self.has_reader and self._is_far_ahead():
            await self._changed.wait()
        while not self.has_reader and self._is_far_ahead():
            self.pop()

    def end(self) -> None:
        """Mark the stream as over: no more events will follow."""
        self.is_over = True
        self._change()

    def pause(self) -> None:
        """End the response of the reader; another reader may take the later events."""
        self._is_paused = True
        self._change()

    async def enter(self) -> None:
        """Become the reader.

        Raises:
            BusyError: the stream has a reader, and it did not leave in time.
        """
        try:
            async with asyncio.timeout(_LEAVES_WITHIN_S):
                while self.has_reader:
                    await self._changed.wait()
        except TimeoutError:
            raise BusyError from None
        self.has_reader, self._is_paused = True, False

    def leave(self) -> None:
        """Stop being the reader."""
        self.has_reader = False
        self._change()

    async def next(self, within_s: float | None) -> StreamEvent | None:
        """Return the next event, which stays until `pop`; None at the end, or at a pause.

        Raises:
            TimeoutError: no event came in this time.
        """
        async with asyncio.timeout(within_s):
            while not (self._events or self.is_over or self._is_paused):
                await self._changed.wait()
        return self._events[0] if self._events else None

    def pop(self) -> None:
        """Remove the oldest event: it was sent, or it is dropped."""
        event = self._events.popleft()
        self._bytes -= len(event.json)
        self.told = event.number
        self._change()

    @property
    def unread_bytes(self) -> int:
        """Number of bytes that no reader has taken."""
        return self._bytes

    def _is_far_ahead(self) -> bool:
        return len(self._events) > MAX_AHEAD or (
            self._bytes > MAX_AHEAD_BYTES and len(self._events) > 1
        )

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
