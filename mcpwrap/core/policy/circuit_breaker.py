"""Rate limit, loop detection and circuit breaker of tool calls, over all sessions of an agent.

The pattern is Nygard's circuit breaker ("Release It!", chapter 5): it opens, cools down, and then
allows a single call as a trial. All times are of one monotonic clock, in seconds.

An agent can invent any number of names. So the first names of an agent at a server have a counter
each, at most `MAX_TOOLS` and only as many as together remember `MAX_CALLS` calls; all later names
under the same entry of `limits` share one counter. Tools that an entry names without a wildcard
always have their own counter.
"""

from collections import deque
from dataclasses import dataclass, field

from mcpwrap.core.policy.decision import LimitExceeded
from mcpwrap.core.policy.rules import LimitsEntry

COOL_DOWN_S = 30  # if the policy has no value
MAX_TOOLS = 1024  # of one agent at one server, each with a counter of its own
MAX_CALLS = 500_000  # whose times these store, if one entry is for all: 16 MB
Key = tuple[int, str, str]  # an agent's UID, a server, a tool
# Later names share a counter by entry: with one for all, an entry of seconds would drop times that
# an entry of hours needs.
_SharedKey = tuple[int, str, LimitsEntry]


@dataclass(slots=True)
class _Circuit:
    """State of one agent's calls to one tool."""

    called_at_s: deque[float] = field(default_factory=deque)
    last_digest: bytes = b""
    identical: int = 0
    failures: int = 0
    why_open: str = ""  # "" is closed
    until_s: float = 0.0  # open; afterwards one call is tried
    is_trying: bool = False
    is_shared: bool = False  # between tools: the success of one is no evidence for another


class CircuitBreaker:
    """Circuit breakers and rate limits of all agents."""

    def __init__(self) -> None:
        self._circuit_by_key: dict[Key, _Circuit] = {}
        self._shared_by_key: dict[_SharedKey, _Circuit] = {}
        self._how_many: dict[tuple[int, str], int] = {}

    def ask(
        self, key: Key, limits: LimitsEntry, digest: bytes, now_s: float
    ) -> LimitExceeded | None:
        """Count a call; return why it is refused now, or None."""
        circuit = self._circuit(key, limits)
        if held := _limit_while_open(circuit, limits, now_s) or _limit_by_rate(
            circuit, limits, now_s
        ):
            return held
        if not circuit.why_open:
            circuit.identical = circuit.identical + 1 if digest == circuit.last_digest else 1
            circuit.last_digest = digest
            if limits.identical_calls and circuit.identical > limits.identical_calls:
                why = f"{limits.identical_calls} identical calls in a row"
                return _open(circuit, why, limits, now_s)
        if limits.calls:
            circuit.called_at_s.append(now_s)
        return None

    def report(self, key: Key, limits: LimitsEntry, now_s: float, *, failed: bool) -> str:
        """Record the outcome of a call; return why it opens the breaker, "" if it does not."""
        circuit = self._circuit(key, limits)
        if circuit.why_open and not circuit.is_trying:
            return ""  # a call from before the breaker opened
        if not failed:
            circuit.is_trying = False
            if not circuit.is_shared:
                circuit.failures = 0
            if circuit.why_open:
                circuit.why_open, circuit.identical = "", 0
            return ""
        circuit.failures += 1
        if circuit.is_trying:
            return _open(circuit, circuit.why_open, limits, now_s).why
        if limits.failures and circuit.failures >= limits.failures:
            return _open(circuit, f"{limits.failures} failures in a row", limits, now_s).why
        return ""

    def forget_all(self) -> None:
        """Reset all counters: the policy has changed, and with it perhaps the cause of failures."""
        self._circuit_by_key.clear()
        self._shared_by_key.clear()
        self._how_many.clear()

    def _circuit(self, key: Key, limits: LimitsEntry) -> _Circuit:
        if known := self._circuit_by_key.get(key):
            return known
        agent_uid, server, tool = key
        if tool not in limits.tools:
            count = self._how_many.get((agent_uid, server), 0)
            if count >= _most_names(limits):
                shared = _Circuit(is_shared=True)
                return self._shared_by_key.setdefault((agent_uid, server, limits), shared)
            self._how_many[agent_uid, server] = count + 1
        return self._circuit_by_key.setdefault(key, _Circuit())


def _most_names(limits: LimitsEntry) -> int:
    """Return the number of names that get a counter of their own."""
    return min(MAX_TOOLS, MAX_CALLS // (limits.calls or 1))


def _limit_while_open(circuit: _Circuit, limits: LimitsEntry, now_s: float) -> LimitExceeded | None:
    """Refuse all calls while it is open; then allow one, and refuse others until its outcome."""
    if not circuit.why_open:
        return None
    if now_s < circuit.until_s:
        return LimitExceeded(circuit.why_open, circuit.until_s - now_s)
    # The outcome of that call may never come: after another cool-down the next one is allowed.
    circuit.is_trying, circuit.until_s = True, now_s + _cool_down_s(limits)
    return None


def _limit_by_rate(circuit: _Circuit, limits: LimitsEntry, now_s: float) -> LimitExceeded | None:
    """Refuse calls over the rate. The window slides: no burst straddles two and passes twice."""
    if not limits.calls:
        return None
    window = circuit.called_at_s
    while window and window[0] <= now_s - limits.calls_window_s:
        window.popleft()
    if len(window) < limits.calls:
        return None
    return LimitExceeded(
        f"{limits.calls} calls in {limits.calls_window_s:g} s",
        window[0] + limits.calls_window_s - now_s,
    )


def _cool_down_s(limits: LimitsEntry) -> int:
    return limits.cool_down_s or COOL_DOWN_S


def _open(circuit: _Circuit, why: str, limits: LimitsEntry, now_s: float) -> LimitExceeded:
    circuit.why_open, circuit.until_s = why, now_s + _cool_down_s(limits)
    circuit.is_trying, circuit.failures = False, 0
    return LimitExceeded(why, _cool_down_s(limits))
