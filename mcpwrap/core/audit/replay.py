"""Replay of agents' recorded requests against a policy: which decisions would differ."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from mcpwrap.core.audit.params import Box, Params, UnreadableParams, params_of
from mcpwrap.core.audit.records import MAX_TEXT_CHARS, Record
from mcpwrap.core.gate.session import is_refused, judged
from mcpwrap.core.policy.compiled import (
    NO_CONTEXT,
    CompiledPolicy,
    ServerContext,
    compile_policy,
)
from mcpwrap.core.policy.decision import Decision, Judgement
from mcpwrap.core.policy.rules import DEFAULT_PREFIX, Policy
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.methods import TOOLS_CALL, PolicyScope, ProtocolEra

_PASSED = {"allowed", "limited"}  # decisions that the policy allowed: limits are checked after it
_REFUSED = {"blocked", "held", "unasked"}  # by the policy
_MAX_EXAMPLES = 3
_UNKNOWN = Judgement(Decision.BLOCK, message="not a method of MCP, and no rule names it")


@dataclass(slots=True)
class ReplayGroup:
    """Requests that one rule decides differently; the default has the name ""."""

    rule: str
    count: int = 0
    examples: list[tuple[Record, Params | None]] = field(default_factory=list)


class Replay:
    """Policy under test, and its decisions on the requests so far."""

    def __init__(
        self,
        policy: Policy,
        opens: Box | None,
        contexts: Mapping[str, ServerContext] = MappingProxyType({}),
    ) -> None:
        self.judged = 0
        self.unread: Counter[UnreadableParams] = Counter()
        self.blocked_by_rule: dict[str, ReplayGroup] = {}  # by the rules of this policy
        self.allowed_by_rule: dict[str, ReplayGroup] = {}  # by the rules of the recorded policy
        self._policy = policy
        self._opens = opens
        self._contexts = contexts
        self._by_session: dict[tuple[str, str], CompiledPolicy] = {}  # by server and project

    def take(self, record: Record) -> None:
        """Judge a record, if it is of a request that the policy judged."""
        is_request = record.sender == "agent" and record.id is not None
        if not is_request or record.decision not in _PASSED | _REFUSED:
            return
        policy = self._compiled(record.server, record.project)
        params = params_of(record, self._opens)
        if isinstance(params, UnreadableParams):
            if _needs_params(policy, record):
                self.unread[params] += 1
                return
            judgement = judge(policy, record.method, {"name": record.target})
        else:
            judgement = judge(policy, record.method, params)
        self.judged += 1
        self._compare(record, judgement, None if isinstance(params, UnreadableParams) else params)

    def _compiled(self, server: str, project: str) -> CompiledPolicy:
        found = self._by_session.get((server, project))
        if found is None and project:
            found = self._compiled(server, "").in_project(project)
        elif found is None:
            context = self._contexts.get(server, NO_CONTEXT)
            found = compile_policy(self._policy, server, context)
        self._by_session[server, project] = found
        return found

    def _compare(self, record: Record, judgement: Judgement, params: Params | None) -> None:
        was_refused = record.decision in _REFUSED
        if was_refused == is_refused(judgement):
            return
        groups = self.allowed_by_rule if was_refused else self.blocked_by_rule
        rule = record.rule if was_refused else judgement.rule
        group = groups.setdefault(rule, ReplayGroup(rule))
        group.count += 1
        if len(group.examples) < _MAX_EXAMPLES:
            group.examples.append((record, params))


def judge(policy: CompiledPolicy, method: str, params: Params) -> Judgement:
    """Judge an agent's request as the gate does, by the policy alone."""
    scope = _scope(method)
    if scope is None:
        if not policy.names(method):
            return _UNKNOWN
        scope = PolicyScope.JUDGE
    return judged(policy, scope, method, params)


def _scope(method: str) -> PolicyScope | None:
    """Return the policy scope of a method, which is equal in all eras that have the method."""
    scopes = (methods.agent_request(method, era) for era in ProtocolEra)
    return next((scope for scope in scopes if scope is not None), None)


def _depends_on_arguments(policy: CompiledPolicy, record: Record) -> bool:
    """Return whether the default policy can decide a call differently by its arguments."""
    rules = policy.default_rules_for_tool(record.target)
    is_by_name = any(rule.rule.name == record.rule and not rule.conditions for rule in rules)
    return not is_by_name and any(rule.conditions for rule in rules)


def _needs_params(policy: CompiledPolicy, record: Record) -> bool:
    """Return whether the decision depends on more than the names of method and tool.

    The default policy's rules on arguments apply only if they are sure, and without arguments they
    are not: a call that one of them has decided is not judged again, and all others are.
    """
    if record.rule.startswith(DEFAULT_PREFIX) and _depends_on_arguments(policy, record):
        return True
    if max(len(record.method), len(record.target)) > MAX_TEXT_CHARS:  # the name was cut
        return True
    if record.method == TOOLS_CALL:
        rules = policy.rules_for_tool(record.target)
    else:
        rules = policy.rules_for_method(record.method)
    first = next((rule for rule in rules if rule.outcome is not None), None)
    if first is None:
        return False
    is_call = record.method == TOOLS_CALL
    return not first.always_decides or (is_call and bool(policy.answers_for_tool(record.target)))
