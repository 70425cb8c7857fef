"""Policy decision types, and the interfaces of policy, limits and audit that the gate calls."""

from collections.abc import Mapping
from enum import StrEnum
from math import inf
from typing import Literal, Protocol

import msgspec

from mcpwrap.core.policy.arguments.kinds import KnownTools
from mcpwrap.core.protocol.json_value import Json


class Decision(StrEnum):
    """Decision of a policy on one message."""

    ALLOW = "allow"
    BLOCK = "block"
    NEEDS_APPROVAL = "needs approval"


class Judgement(msgspec.Struct, frozen=True):
    """Decision, and the rule it comes from."""

    decision: Decision
    rule: str = ""  # its name; "" is the policy's default
    message: str = ""  # for the agent, from the rule
    notes: tuple[str, ...] = ()  # rules that matched and only watch: `log`, and `observe`
    in_client: bool = False  # an approval may be given in the agent's own window
    hit: str = ""  # the argument that a condition held for, and the part of it; printable ASCII


class AskingRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that ask for approval of one call, and the arguments that they are about."""

    rules: tuple[str, ...] = ()  # names
    deciding: tuple[str, ...] = ()  # arguments of their conditions, in the order of the rules
    exact: tuple[str, ...] = ()  # arguments of which no other value is like the approved one


class ApprovalTimeouts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Approval timeouts of a request: until its question expires, and until the agent must retry.

    The agent must retry before its own timeout: 60 s in the official TypeScript SDK.
    """

    expires_s: float | None = 300.0  # None: never
    wait_s: float = 45.0

    @property
    def pending_s(self) -> float:
        """Return how long a question stays pending; infinity if it does not expire."""
        return inf if self.expires_s is None else self.expires_s


class ResultJudgement(msgspec.Struct, frozen=True):
    """Decision on a result: the value to pass on, or the refusal."""

    value: Json
    refusal: Judgement | None = None
    notes: tuple[str, ...] = ()
    left_out: str = ""  # entries of a list left out without a rule, and why; printable ASCII


class ServerPolicy(Protocol):
    """Interface of the rules for one server."""

    times: ApprovalTimeouts

    def judge(self, method: str, params: Mapping[str, Json]) -> Judgement:
        """Judge a request or a notification by all of its params; a tool is in their `name`."""

    def names(self, method: str) -> bool:
        """Return whether a rule allows this very method, so that one MCP does not have may pass."""

    def asking(self, method: str, params: Mapping[str, Json]) -> AskingRules:
        """Return the rules that ask for approval of a request."""

    def hides(self, tool: str) -> bool:
        """Return whether a tool is neither listed nor callable."""

    def learn(self, tools: KnownTools) -> None:
        """Take what the server's definitions say of the arguments of its tools."""

    def judge_result(self, method: str, target: str, value: Json) -> ResultJudgement:
        """Judge the result of a tool, a resource's URI, or a prompt.

        `value` is never changed in place: if the same object is returned, it passes unchanged.
        """

    def judge_description(self, method: str, value: dict[str, Json]) -> ResultJudgement:
        """Judge a server's description of itself and of what it has; as above, never refused."""


LimitKind = Literal["rate", "loop", "failures"]


class LimitExceeded(msgspec.Struct, frozen=True):
    """Refusal for now, by a rate limit or the circuit breaker."""

    why: str
    retry_after_s: float
    kind: LimitKind = "rate"
    of_default_policy: bool = False


class CallOutcome(msgspec.Struct, frozen=True):
    """Outcome of a call that the limits allowed."""

    failed: bool
    call_digest: bytes = b""  # as in `CallLimiter.ask`; b"" where it is not counted
    answer_digest: bytes = b""  # of the result or error; b"" where it is not counted


class CallLimiter(Protocol):
    """Interface of the limits: the stage after policy, which `allow` does not skip."""

    def counts(self, tool: str) -> bool:
        """Return whether identical calls of a tool are counted; if not, `ask` gets no digest."""

    def ask(self, tool: str, call_digest: bytes) -> LimitExceeded | None:
        """Count a call that the policy allows; return why it is refused now, or None."""

    def needs_answer(self, tool: str, call_digest: bytes) -> bool:
        """Return whether the outcome of the call needs the digest of its answer."""

    def report(self, tool: str, outcome: CallOutcome) -> None:
        """Report the outcome of an allowed call."""
