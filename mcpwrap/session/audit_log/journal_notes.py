"""Log lines about one session, rate-limited because an agent can cause any number."""

import time
from collections.abc import Callable

from mcpwrap.core.gate.session import JournalNote
from mcpwrap.core.log_rate_limit import LogRateLimit
from mcpwrap.linux.systemd.stderr_log import log_line

_MAX_PER_S = 5  # all sessions share the journal, which has a rate limit of its own


class JournalNotes:
    """Rate-limited log of one session."""

    def __init__(self, who: str, write: Callable[[JournalNote], None]) -> None:
        """`write` writes the line of one note; lines about the limit go to standard error."""
        self._who = who
        self._write = write
        self._quota = LogRateLimit(_MAX_PER_S)

    def note(self, note: JournalNote) -> None:
        """Write a line, or count it if there are too many."""
        if self._quota.admits(time.monotonic()):
            if count := self._quota.take_left_out():
                log_line(f"{self._who}: {count} lines omitted here (rate limit)")
            self._write(note)
        elif self._quota.is_first_left_out():
            log_line(f"{self._who}: too many lines; some are omitted")
