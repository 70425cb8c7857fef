"""Log lines about one session, rate-limited since an agent can cause any number."""

import time
from collections.abc import Callable

from mcpwrap.core.gate.session import JournalNote
from mcpwrap.core.log_rate_limit import LogRateLimit
from mcpwrap.linux.systemd.stderr_log import log_line

_MAX_PER_S = 5  # the journal is for all sessions, and has a limit of its own


class JournalNotes:
    """Rate-limited log of one session."""

    def __init__(self, who: str, write: Callable[[JournalNote], None]) -> None:
        """`write` leaves the line of one; what is said of a flood goes to standard error."""
        self._who = who
        self._write = write
        self._quota = LogRateLimit(_MAX_PER_S)

    def note(self, note: JournalNote) -> None:
        """Leave a line; of a flood, how many lines it had."""
        if self._quota.admits(time.monotonic()):
            if count := self._quota.take_left_out():
                log_line(f"{self._who}: {count} lines were left out here")
            self._write(note)
        elif self._quota.is_first_left_out():
            log_line(f"{self._who}: too many lines, so some are left out")
