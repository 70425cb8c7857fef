"""Rate limit for errors in the journal."""

import time
from collections.abc import Callable

from mcpwrap.core.text.sanitise import visible
from mcpwrap.linux.systemd.stderr_log import log_line

EVERY_S = 60.0
_MAX_CHARS = 300  # an error can quote the receiver


class RateLimitedLog:
    """Error log that writes the first error at once, then one a minute with a count of others."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged_at_s: float | None = None
        self._left_out = 0

    def note(self, text: str) -> None:
        """Log a failure, or count it."""
        now_s = self._clock()
        if self._logged_at_s is not None and now_s - self._logged_at_s < EVERY_S:
            self._left_out += 1
            return
        more = f"; {self._left_out} more before it" if self._left_out else ""
        log_line(visible(text)[:_MAX_CHARS] + more)
        self._logged_at_s, self._left_out = now_s, 0

    def mended(self, text: str) -> None:
        """Log that it works again, if a failure was logged."""
        if self._logged_at_s is not None:
            log_line(text)
        self._logged_at_s, self._left_out = None, 0
