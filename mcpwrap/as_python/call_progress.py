"""Calls in progress: their cancellation, deadlines, and progress notifications.

One thread does the timing for all calls. It sleeps while there is none.
"""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Id

_TICK_S = 1.0  # at most one notification of a call in this time
_SILENT_S = 5.0  # and at least one in this
_MAX_MESSAGE_CHARS = 1000


class CallCancelledError(Exception):
    """Call that the agent has cancelled, or whose session has ended. It gets no response."""


class CallInProgress:
    """State of one call that its own thread, the reader and the ticker share."""

    def __init__(self, token: Id | None, notify: Callable[[Json], None]) -> None:
        """`token` is the progress token; None if the agent wants no notifications."""
        self._token = token
        self._notify = notify
        self._began_s = time.monotonic()
        self._notifying = threading.Lock()  # held while a notification is written, which may block
        self._lock = threading.Lock()  # of the connection
        self._connection: socket.socket | None = None
        self._deadline_s: float | None = None
        self._text = "starting"
        self._has_news = False
        self._notified_s = self._began_s
        self._ended = threading.Event()  # cancelled, or done
        self.is_cancelled = False
        self.is_overdue = False

    @property
    def elapsed_s(self) -> float:
        """Return the time since the call arrived, in seconds."""
        return time.monotonic() - self._began_s

    def report(self, text: str) -> None:
        """Set the text of the next notification.

        Raises:
            CallCancelledError: the call was cancelled, so its work must stop.
        """
        self.expect_wanted()
        with self._notifying:
            self._has_news = self._has_news or text != self._text
            self._text = text

    def expect_wanted(self) -> None:
        """Check that the call goes on.

        Raises:
            CallCancelledError: it was cancelled.
        """
        if self.is_cancelled:
            raise CallCancelledError

    def attach(self, connection: socket.socket, timeout_s: float) -> None:
        """Shut down this connection when the call is cancelled, or after this time.

        Raises:
            CallCancelledError: it was cancelled already.
        """
        with self._lock:
            self._connection = connection
            self._deadline_s = time.monotonic() + timeout_s
        self.expect_wanted()

    def detach(self) -> None:
        """Forget the connection, before it is closed."""
        with self._lock:
            self._connection = self._deadline_s = None

    def cancel(self) -> None:
        """Cancel the call: its connection ends, and with it the run."""
        self.is_cancelled = True
        self._ended.set()
        self._hang_up()

    def finish(self) -> None:
        """End the notifications: none may follow the response."""
        with self._notifying:
            self._token = None
        self._ended.set()

    def pause(self, seconds: float) -> None:
        """Wait this long.

        Raises:
            CallCancelledError: the call was cancelled meanwhile.
        """
        self._ended.wait(seconds)
        self.expect_wanted()

    def tick(self, now_s: float) -> None:
        """Send a notification if one is due, and end a connection that is overdue."""
        with self._lock:
            is_overdue = self._deadline_s is not None and now_s > self._deadline_s
        if is_overdue:
            self.is_overdue = True
            self._hang_up()
        with self._notifying:
            is_due = self._has_news or now_s - self._notified_s >= _SILENT_S
            if self._token is not None and is_due and not self.is_cancelled:
                self._has_news, self._notified_s = False, now_s
                self._notify(self._notification(now_s))

    def _notification(self, now_s: float) -> Json:
        elapsed_s = now_s - self._began_s
        message = f"{elapsed_s:.0f} s: {self._text}"
        return {
            "progressToken": self._token,
            # Seconds: they increase with each notification, as the specification requires.
            "progress": round(elapsed_s, 3),
            "message": message[:_MAX_MESSAGE_CHARS],
        }

    def _hang_up(self) -> None:
        with self._lock:
            # Not SSLSocket.shutdown(), which another thread's read of the same object would notice
            # as an AttributeError. The socket below it ends that read as the peer's end does.
            if self._connection is not None:
                with suppress(OSError):
                    socket.socket.shutdown(self._connection, socket.SHUT_RDWR)


class CallTicker:
    """Thread that sends the notifications of all calls in progress."""

    def __init__(self, tick_s: float = _TICK_S) -> None:
        self._tick_s = tick_s
        self._calls: set[CallInProgress] = set()
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="ticker", daemon=True).start()

    def add(self, call: CallInProgress) -> None:
        """Take up a call."""
        with self._changed:
            self._calls.add(call)
            self._changed.notify()

    def discard(self, call: CallInProgress) -> None:
        """Drop a call."""
        with self._changed:
            self._calls.discard(call)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._calls)
            time.sleep(self._tick_s)
            with self._changed:
                calls = tuple(self._calls)
            for call in calls:
                call.tick(time.monotonic())
