"""Rate limits and circuit breaker over the calls of all sessions, in the monitor."""

from mcpwrap.as_gate.ipc.packets import CallFinished, CallLimitRequest
from mcpwrap.as_gate.state.children import Child
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.core.policy.circuit_breaker import CircuitBreaker
from mcpwrap.core.policy.decision import LimitExceeded
from mcpwrap.core.policy.rules import LimitsEntry
from mcpwrap.linux.systemd.stderr_log import log_line


class CallCounters:
    """Call counters by account (from the kernel), server (access list) and tool (as reported)."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self._breaker = CircuitBreaker()

    def ask(self, child: Child, asked: CallLimitRequest, now_s: float) -> LimitExceeded | None:
        """Count a call; return why it may not go now."""
        limits = self._limits(child.server, asked.tool)
        if limits is None:
            return None
        key = (child.who.uid, child.server, asked.tool)
        return self._breaker.ask(key, limits, asked.digest, now_s)

    def report(self, child: Child, told: CallFinished, now_s: float) -> None:
        """Note how a call ended."""
        limits = self._limits(child.server, told.tool)
        if limits is None:
            return
        key = (child.who.uid, child.server, told.tool)
        if why := self._breaker.report(key, limits, now_s, failed=told.failed):
            log_line(f"uid {child.who.uid}, {child.server!r}: {told.tool!a} is held back: {why}")

    def forget_all(self) -> None:
        """Start anew, by a new policy."""
        self._breaker.forget_all()

    def _limits(self, server: str, tool: str) -> LimitsEntry | None:
        policy = self._policies.compiled(server)
        return policy.limits_for(tool) if policy else None
