"""Exponential backoff of servers that could not be started: a retry before its end is refused.

Each attempt costs root a mint and systemd a start. The gate itself answers an agent that retries in
a loop.
"""

import math
from dataclasses import dataclass

FIRST_S, LAST_S = 1.0, 4.0
FORGET_AFTER_S = 30.0  # without another failure


@dataclass(frozen=True, slots=True)
class _Failure:
    count: int
    at_s: float
    why: str

    def until_s(self) -> float:
        """Return the end of the backoff. A first failure has none: the second attempt is made."""
        doublings = min(self.count, 10) - 2
        return self.at_s + (min(LAST_S, FIRST_S * 2.0**doublings) if doublings >= 0 else 0.0)


class Backoff:
    """Failed starts by server. Times are monotonic, in seconds."""

    def __init__(self) -> None:
        self._failure_by_name: dict[str, _Failure] = {}

    def note(self, name: str, why: str, now_s: float) -> None:
        """Record a failed start of a server."""
        before = self._failure_by_name.get(name)
        is_old = before is None or now_s - before.at_s > FORGET_AFTER_S
        count = 1 if before is None or is_old else before.count + 1
        self._failure_by_name[name] = _Failure(count, now_s, why)

    def refusal(self, name: str, now_s: float) -> str:
        """Return why the server is not started now; "" if it may be."""
        failure = self._failure_by_name.get(name)
        if failure is None or now_s >= failure.until_s():
            return ""
        wait_s = failure.until_s() - now_s
        return f"{failure.why} (failed {failure.count} times; next try in {math.ceil(wait_s)} s)"

    def forget(self, name: str) -> None:
        """Clear one server, which has started."""
        self._failure_by_name.pop(name, None)

    def forget_all(self) -> None:
        """Clear all servers: the configuration has changed."""
        self._failure_by_name.clear()
