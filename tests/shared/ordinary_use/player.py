"""Player of calls in one session under a policy, with a clock of its own.

Calls follow one another: each is answered before the next.
"""

from collections.abc import Iterable

import msgspec

from mcpwrap.core.gate.call_outcomes import digest_of
from mcpwrap.core.policy.arguments.kinds import KnownTools
from mcpwrap.core.policy.compiled import CALL, compile_policy
from mcpwrap.core.policy.decision import CallOutcome, Decision
from mcpwrap.core.policy.limits.session_limiter import SessionLimiter
from mcpwrap.core.policy.rules import LimitScope, Policy
from mcpwrap.core.protocol.strict_json import encode_sorted
from tests.shared.definitions.record import FOLDER as DEFINITIONS
from tests.shared.ordinary_use.sequences import OrdinaryCall

_SCOPES: tuple[LimitScope, ...] = ("agent", "session")


class PolicyPlayer:
    """Rules and limits of one session at a server."""

    def __init__(self, policy: Policy, server: str) -> None:
        self._now_s = 0.0
        self._policy = compile_policy(policy, server)
        self._policy.learn(_listed(server))
        self._limiter = SessionLimiter(self._policy, _SCOPES, lambda: self._now_s, lambda *_: None)

    def refusals(self, calls: Iterable[OrdinaryCall]) -> list[str]:
        """Play calls; return for each why it is refused or held, or "" if it passes."""
        return [self._play(call) for call in calls]

    def _play(self, call: OrdinaryCall) -> str:
        self._now_s = call.at_s
        judgement = self._policy.judge(CALL, {"name": call.tool, "arguments": call.arguments})
        if judgement.decision is not Decision.ALLOW:
            return f"{judgement.decision}: {judgement.rule}"
        digest = digest_of(encode_sorted([call.tool, call.arguments]))
        if held := self._limiter.ask(call.tool, digest):
            return f"{held.kind}: {held.why}"
        answer = b""
        if self._limiter.needs_answer(call.tool, digest):
            answer = digest_of(call.answer.encode())
        self._limiter.report(call.tool, CallOutcome(call.failed, digest, answer))
        return ""


def _listed(server: str) -> KnownTools:
    """Return what the definitions of a server say of its arguments, if they are recorded."""
    known = KnownTools()
    file = DEFINITIONS / f"{server}.json"
    if file.exists():
        for tool in msgspec.json.decode(file.read_bytes())["tools"]:
            known.take(tool["name"], msgspec.json.encode(tool))
    return known
