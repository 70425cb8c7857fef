"""Call limiter of one session: its own counters, and the monitor's for all of its agent."""

import time
from collections.abc import Callable

from mcpwrap.as_gate.ipc import packets
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.core.policy.compiled import CompiledPolicy
from mcpwrap.core.policy.decision import CallOutcome, LimitExceeded
from mcpwrap.core.policy.limits.session_limiter import SessionLimiter
from mcpwrap.core.policy.rules import LimitScope, LimitsEntry

_SCOPES: tuple[LimitScope, ...] = ("session",)  # that the session counts itself


class SessionCallLimiter:
    """Session's counters, and the monitor's of its agent. Implements `decision.CallLimiter`.

    It asks the monitor only if the operator's policy has a limit on all sessions of an agent.
    """

    def __init__(
        self, policy: CompiledPolicy, monitor: ToMonitor, log: Callable[[str, str], None]
    ) -> None:
        self._policy = policy
        self._monitor = monitor
        self._own = SessionLimiter(policy, _SCOPES, time.monotonic, log)

    def renew(self, policy: CompiledPolicy) -> None:
        """Take a new policy; the monitor resets its counters itself."""
        self._policy = policy
        self._own.renew(policy)

    def counts(self, tool: str) -> bool:
        """Return whether identical calls of a tool are counted."""
        limits = self._of_agent(tool)
        return (limits is not None and limits.counts_repeats) or self._own.counts(tool)

    def ask(self, tool: str, call_digest: bytes) -> LimitExceeded | None:
        """Count a call that the policy allows; return why it is refused now, or None."""
        held = self._own.ask(tool, call_digest)
        if held is not None or self._of_agent(tool) is None:
            return held
        return self._monitor.ask(tool, call_digest or packets.NO_DIGEST)

    def needs_answer(self, tool: str, call_digest: bytes) -> bool:
        """Return whether the outcome of the call needs the digest of its answer."""
        limits = self._of_agent(tool)
        if limits is not None and limits.identical_calls:
            return True
        return self._own.needs_answer(tool, call_digest)

    def report(self, tool: str, outcome: CallOutcome) -> None:
        """Report the outcome of an allowed call."""
        self._own.report(tool, outcome)
        limits = self._of_agent(tool)
        ends_a_loop = not outcome.failed and self._policy.counts_repeats_of_agents
        if ends_a_loop or (limits is not None and (limits.failures or limits.counts_repeats)):
            finished = packets.CallFinished(
                tool,
                outcome.failed,
                outcome.call_digest or packets.NO_DIGEST,
                outcome.answer_digest or packets.NO_DIGEST,
            )
            self._monitor.send(finished)

    def _of_agent(self, tool: str) -> LimitsEntry | None:
        limits = self._policy.limits_for(tool)
        return limits if limits is not None and limits.scope == "agent" else None
