"""Rate limit, loop detection and circuit breaker of tool calls, of agents or of one session.

The pattern is Nygard's circuit breaker ("Release It!", chapter 5): it opens, cools down, and then
allows a single call as a trial. All times are of one monotonic clock, in seconds.

An agent can invent any number of names. So the first names of an agent at a server have a counter
each, at most `MAX_TOOLS` and only as many as together remember `MAX_CALLS` calls; all later names
under the same entry of `limits` share one counter. Tools that an entry names without a wildcard
always have their own counter.
"""

from collections import deque

from mcpwrap.core.policy.decision import CallOutcome, LimitExceeded
from mcpwrap.core.policy.limits.repeated_calls import RepeatedCalls, RepeatLimits, cool_down_s
from mcpwrap.core.policy.rules import LimitsEntry

MAX_TOOLS = 1024  # of one agent at one server, each with a counter of its own
MAX_CALLS = 500_000  # whose times these store, if one entry is for all: 16 MB
Key = tuple[int, str, str]  # an agent's UID, a server, a tool
# Later names share a counter by entry: with one for all, an entry of seconds would drop times that
# an entry of hours needs.
_SharedKey = tuple[int, str, LimitsEntry]


class ToolCounter:
    """Counts of one agent's calls to one tool."""

    __slots__ = (
        "_called_at_s", "_counts_repeats", "_failures", "_is_shared", "_is_trying",
        "_repeat_limits", "_repeated", "_until_s", "_why_open", "limits",
    )  # fmt: skip

    def __init__(
        self, limits: LimitsEntry, repeated: RepeatedCalls, *, is_shared: bool = False
    ) -> None:
        """`is_shared`: between tools, so the success of one is no evidence for another."""
        self.limits = limits
        self._repeat_limits = RepeatLimits(limits)
        self._counts_repeats = limits.counts_repeats
        self._repeated = repeated
        self._is_shared = is_shared
        self._called_at_s: deque[float] = deque()
        self._failures = 0
        self._why_open = ""  # "" is closed
        self._until_s = 0.0  # open; afterwards one call is tried
        self._is_trying = False

    def ask(self, digest: bytes, now_s: float) -> LimitExceeded | None:
        """Count a call; return why it is refused now, or None.

        The digest is of the tool and the arguments.
        """
        limits = self.limits
        if self._why_open and now_s < self._until_s:
            return LimitExceeded(self._why_open, self._until_s - now_s, "failures")
        if limits.calls and (held := self._limit_by_rate(limits.calls, now_s)):
            return held
        if self._counts_repeats and (
            held := self._repeated.ask(digest, self._repeat_limits, now_s)
        ):
            return held
        if self._why_open:
            # The outcome of the call that is tried may never come: after another cool-down the
            # next one is.
            self._is_trying, self._until_s = True, now_s + cool_down_s(limits)
        if limits.calls:
            self._called_at_s.append(now_s)
        return None

    def needs_answer(self, digest: bytes) -> bool:
        """Return whether the digest of a call's answer is to be reported."""
        return self._repeated.needs_answer(digest, self._repeat_limits)

    def report(self, outcome: CallOutcome, now_s: float) -> str:
        """Record the outcome of a call; return why it opens the breaker, "" if it does not."""
        self._repeated.report(outcome)
        limits = self.limits
        if not limits.failures or (self._why_open and not self._is_trying):
            return ""  # if it is open, the call is from before
        if not outcome.failed:
            self._is_trying, self._why_open = False, ""
            if not self._is_shared:
                self._failures = 0
            return ""
        self._failures += 1
        if self._is_trying:
            return self._open(self._why_open, now_s)
        if self._failures >= limits.failures:
            return self._open(f"{limits.failures} failures in a row", now_s)
        return ""

    def _open(self, why: str, now_s: float) -> str:
        self._why_open, self._until_s = why, now_s + cool_down_s(self.limits)
        self._is_trying, self._failures = False, 0
        return why

    def _limit_by_rate(self, calls: int, now_s: float) -> LimitExceeded | None:
        """Refuse calls over the rate. The window slides: no burst passes twice."""
        window, window_s = self._called_at_s, self.limits.calls_window_s
        while window and window[0] <= now_s - window_s:
            window.popleft()
        if len(window) < calls:
            return None
        return LimitExceeded(f"{calls} calls in {window_s:g} s", window[0] + window_s - now_s)


class CircuitBreaker:
    """Circuit breakers, rate limits and loop detection of all agents."""

    def __init__(self) -> None:
        self._counter_by_key: dict[Key, ToolCounter] = {}
        self._shared_by_key: dict[_SharedKey, ToolCounter] = {}
        self._how_many: dict[tuple[int, str], int] = {}
        self._repeated: dict[tuple[int, str], RepeatedCalls] = {}

    def counter(self, key: Key, limits: LimitsEntry) -> ToolCounter:
        """Return the counter of a tool; its limits are the same until all are forgotten."""
        if known := self._counter_by_key.get(key):
            return known
        agent_uid, server, tool = key
        at_server = self.repeated(agent_uid, server)
        if tool not in limits.tools:
            count = self._how_many.get((agent_uid, server), 0)
            if count >= _most_names(limits):
                shared = ToolCounter(limits, at_server, is_shared=True)
                return self._shared_by_key.setdefault((agent_uid, server, limits), shared)
            self._how_many[agent_uid, server] = count + 1
        return self._counter_by_key.setdefault(key, ToolCounter(limits, at_server))

    def repeated(self, agent_uid: int, server: str) -> RepeatedCalls:
        """Return the calls of an agent at a server that are repeated.

        The success of a tool without limits is reported to them alone.
        """
        return self._repeated.setdefault((agent_uid, server), RepeatedCalls())

    def forget_all(self) -> None:
        """Reset all counters: the policy has changed, and with it perhaps the cause of failures."""
        self._counter_by_key.clear()
        self._shared_by_key.clear()
        self._how_many.clear()
        self._repeated.clear()


def _most_names(limits: LimitsEntry) -> int:
    """Return the number of names that get a counter of their own."""
    return min(MAX_TOOLS, MAX_CALLS // (limits.calls or 1))
