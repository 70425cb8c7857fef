"""Rate limit of one server's events, so that no server fills the disk."""

from mcpwrap.core import rate_limit

MAX_PER_S = 20
_MINUTE_S = 60.0
_MAX_NAMES = MAX_PER_S * 60  # more cannot be written in that time


class EventRateLimit(rate_limit.RateLimit):
    """Event rate limit of one server, and the names that it queried in this minute."""

    def __init__(self) -> None:
        super().__init__(MAX_PER_S)
        self._names: set[str] = set()
        self._names_since_s = 0.0

    def is_new_name(self, name: str, now_s: float) -> bool:
        """Say whether this name was not asked for in this minute yet."""
        if now_s - self._names_since_s >= _MINUTE_S:
            self._names.clear()
            self._names_since_s = now_s
        if name in self._names:
            return False
        if len(self._names) < _MAX_NAMES:
            self._names.add(name)
        return True
