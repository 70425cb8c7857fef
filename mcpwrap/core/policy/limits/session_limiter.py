"""Call limiter whose counters are in the session's own process, so that they cost no packet."""

from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from mcpwrap.core.policy.decision import CallOutcome, LimitExceeded
from mcpwrap.core.policy.limits.circuit_breaker import CircuitBreaker, ToolCounter
from mcpwrap.core.policy.limits.repeated_calls import RepeatedCalls
from mcpwrap.core.policy.rules import LimitScope, LimitsEntry

_MAX_NAMES = 512  # of tools whose counters are found at once
_WHO = 0, ""  # all calls of a session are of one agent at one server


class LimitsByTool(Protocol):
    """Limits of the tools of one server, as `compiled.CompiledPolicy` has them."""

    def limits_for(self, tool: str) -> LimitsEntry | None:
        """Return the operator's limits on calls of a tool."""

    def default_limits_for(self, tool: str) -> LimitsEntry | None:
        """Return the limits of the default policy that the operator's do not replace."""


class _Counters(NamedTuple):
    """Counters of one tool's calls: by the operator's limits, the default's, or both."""

    own: tuple[ToolCounter, ...]
    others: tuple[RepeatedCalls, ...]  # a success of the tool ends loops there
    counts: bool


class SessionLimiter:
    """Limits and circuit breakers of one session. Implements `decision.CallLimiter`."""

    def __init__(
        self,
        limits: LimitsByTool,
        scopes: Collection[LimitScope],
        clock: Callable[[], float],
        log: Callable[[str, str], None],
    ) -> None:
        """`scopes`: of the entries that it counts. `log` gets a tool, and why it is held back."""
        self._scopes = scopes
        self._clock = clock
        self._log = log
        self.renew(limits)

    def renew(self, limits: LimitsByTool) -> None:
        """Take new limits, and reset all counters."""
        self._limits = limits
        # A tool may have limits of both policies, with other numbers.
        self._breakers = CircuitBreaker(), CircuitBreaker()
        self._counters_by_tool: dict[str, _Counters] = {}

    def counts(self, tool: str) -> bool:
        """Return whether identical calls of a tool are counted."""
        return (self._counters_by_tool.get(tool) or self._counters(tool)).counts

    def ask(self, tool: str, call_digest: bytes) -> LimitExceeded | None:
        """Count a call that the policy allows; return why it is refused now, or None."""
        own = (self._counters_by_tool.get(tool) or self._counters(tool)).own
        if own:
            now_s = self._clock()
            for counter in own:
                if held := counter.ask(call_digest, now_s):
                    # Only entries of the default policy have a version.
                    return replace(held, of_default_policy=bool(counter.limits.since))
        return None

    def needs_answer(self, tool: str, call_digest: bytes) -> bool:
        """Return whether the outcome of the call needs the digest of its answer."""
        for counter in (self._counters_by_tool.get(tool) or self._counters(tool)).own:
            if counter.needs_answer(call_digest):
                return True
        return False

    def report(self, tool: str, outcome: CallOutcome) -> None:
        """Report the outcome of an allowed call."""
        own, others, _ = self._counters_by_tool.get(tool) or self._counters(tool)
        for counter in own:
            now_s = self._clock() if counter.limits.failures else 0.0  # nothing else needs it
            if why := counter.report(outcome, now_s):
                self._log(tool, why)
        for repeated in others:
            repeated.report(outcome)

    def _counters(self, tool: str) -> _Counters:
        limits = self._limits.limits_for(tool)
        if limits is not None and limits.scope not in self._scopes:
            limits = None
        own, others = [], []
        both = limits, self._limits.default_limits_for(tool)
        for breaker, limits in zip(self._breakers, both, strict=True):
            if limits is None:
                others.append(breaker.repeated(*_WHO))
            else:
                own.append(breaker.counter((*_WHO, tool), limits))
        counts = any(counter.limits.counts_repeats for counter in own)
        counters = _Counters(tuple(own), tuple(others), counts)
        if len(self._counters_by_tool) >= _MAX_NAMES:
            self._counters_by_tool.clear()
        self._counters_by_tool[tool] = counters
        return counters
