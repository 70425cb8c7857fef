"""Rate limit on log lines, so that no writer fills the disk or drowns the others.

That of tool calls is in `core/policy/limits/circuit_breaker`.
"""

from collections import deque


class LogRateLimit:
    """Line counter of one writer. Times are monotonic, in seconds."""

    def __init__(self, max_per_s: int) -> None:
        self._written_at_s: deque[float] = deque(maxlen=max_per_s)
        self._left_out = 0

    def admits(self, now_s: float) -> bool:
        """Return whether one more line may be written: in any second at most `max_per_s`."""
        times = self._written_at_s
        if len(times) == times.maxlen and now_s - times[0] < 1.0:
            self._left_out += 1
            return False
        times.append(now_s)
        return True

    def is_first_left_out(self) -> bool:
        """Return whether the line just left out is the first since `take_left_out`."""
        return self._left_out == 1

    def take_left_out(self) -> int:
        """Return the number of lines left out since the last call."""
        count, self._left_out = self._left_out, 0
        return count
