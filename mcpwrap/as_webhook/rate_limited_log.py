"""Rate limit of errors that are logged to the journal."""

import time
from collections.abc import Callable

from mcpwrap.core.text.sanitise import visible
from mcpwrap.linux.systemd.stderr_log import log_line

EVERY_S = 60.0
_MAX_CHARS = 300  # an error can quote what a receiver sent


class RateLimitedLog:
    """Error log that writes the first at once, then one a minute with the number left out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said_at_s: float | None = None
        self._left_out = 0

    def note(self, text: str) -> None:
        """Say that something failed, or count it."""
        now_s = self._clock()
        if self._said_at_s is not None and now_s - self._said_at_s < EVERY_S:
            self._left_out += 1
            return
        more = f"; {self._left_out} more before it" if self._left_out else ""
        log_line(visible(text)[:_MAX_CHARS] + more)
        self._said_at_s, self._left_out = now_s, 0

    def mended(self, text: str) -> None:
        """Say that it works, if it did not."""
        if self._said_at_s is not None:
            log_line(text)
        self._said_at_s, self._left_out = None, 0
