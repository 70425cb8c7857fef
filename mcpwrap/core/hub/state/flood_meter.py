"""Meter of what a member sends without having been asked."""

from dataclasses import dataclass

_WINDOW_S = 10.0
# A server that logs each step of its work sends a hundred lines a second at most.
MAX_LINES = 2000
MAX_BYTES = 8 * 1024 * 1024


@dataclass(slots=True)
class FloodMeter:
    """Meter of one session of a member. All that is no awaited response counts."""

    _begun_s: float = 0.0
    _lines: int = 0
    _bytes: int = 0

    def admits(self, now_s: float, line_bytes: int) -> bool:
        """Count a line; return whether the member stays within the bounds of a time window."""
        if now_s - self._begun_s >= _WINDOW_S:
            self._begun_s, self._lines, self._bytes = now_s, 0, 0
        self._lines += 1
        self._bytes += line_bytes
        return self._lines <= MAX_LINES and self._bytes <= MAX_BYTES
