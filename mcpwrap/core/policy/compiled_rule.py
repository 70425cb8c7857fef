"""Compiled rule on messages: its conditions as functions, and its outcome."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from mcpwrap.core.policy.arguments.kinds import KIND_BY_PATH, ArgumentKind
from mcpwrap.core.policy.arguments.selection import ToolArguments
from mcpwrap.core.policy.conditions import (
    Judge,
    PatternsByPath,
    compiled,
    patterns_by_path,
)
from mcpwrap.core.policy.decision import Decision, Judgement
from mcpwrap.core.policy.hits import hit_of
from mcpwrap.core.policy.rules import (
    Action,
    ArgumentCondition,
    Condition,
    NegatedCondition,
    Rule,
)
from mcpwrap.core.policy.tristate import FAILS, UNJUDGEABLE
from mcpwrap.core.protocol.json_value import Json

NO_ARGUMENTS: dict[str, Json] = {}
_DECISIONS: Mapping[Action, Decision] = {
    "allow": Decision.ALLOW,
    "allow_with_approval": Decision.NEEDS_APPROVAL,
    "block": Decision.BLOCK,
    "hide": Decision.BLOCK,
}
_WOULD = {
    "allow": "would allow",
    "allow_with_approval": "would need approval",
    "block": "would block",
    "hide": "would hide",
}


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """Rule ready for evaluation."""

    rule: Rule
    conditions: tuple[Judge, ...]
    outcome: Judgement | None  # None: noted, and the next rule is evaluated
    note: str
    is_for_tools: bool
    only_if_sure: bool  # whether a condition that cannot be judged counts as false
    arguments: ToolArguments  # that conditions on a kind of arguments select from
    makes_conditions: Callable[[ToolArguments], tuple[Judge, ...]]

    @property
    def is_about_kinds(self) -> bool:
        """Whether a condition is about arguments of a kind, wherever they are."""
        return any(_argument(condition).arg in KIND_BY_PATH for condition in self.rule.when)

    def needed_kinds(self) -> tuple[ArgumentKind, ...]:
        """Return the kinds of arguments without which it does not apply."""
        plain = (one for one in self.rule.when if isinstance(one, ArgumentCondition))
        kinds = (KIND_BY_PATH.get(condition.arg) for condition in plain)
        return tuple(kind for kind in kinds if kind is not None)

    def for_tool(self, arguments: ToolArguments) -> "CompiledRule | None":
        """Return the rule for one tool; None if no argument of the tool can meet it."""
        if not all(map(arguments.may_have, self.needed_kinds())):
            return None
        conditions = self.makes_conditions(arguments)
        return dataclasses.replace(self, conditions=conditions, arguments=arguments)

    def hit(self, root: Json) -> str:
        """Return the argument that made it apply, and the part of it; "" without conditions."""
        for condition in self.rule.when:
            if hit := hit_of(condition, root, self.arguments):
                return hit
        return ""

    def applies(self, root: Json) -> bool:
        """Return whether all its conditions hold, or count as if they did."""
        for condition in self.conditions:
            truth = condition(root)
            if truth is FAILS or (truth is UNJUDGEABLE and self.only_if_sure):
                return False
        return True

    @property
    def always_decides(self) -> bool:
        """Whether no later rule is evaluated."""
        return not self.conditions and self.outcome is not None

    @property
    def refuses(self) -> bool:
        """Whether it blocks what it applies to, or asks for approval of it."""
        return self.outcome is not None and self.outcome.decision is not Decision.ALLOW

    @property
    def hides(self) -> bool:
        """Whether its tools do not exist for the agent."""
        outcome = self.outcome
        is_hide = self.rule.action == "hide"
        return is_hide and outcome is not None and outcome.decision is Decision.BLOCK

    def root(self, params: dict[str, Json]) -> Json:
        """Return the value in which its paths begin: arguments for a rule on tools, else params."""
        return params.get("arguments", NO_ARGUMENTS) if self.is_for_tools else params


def compiled_rules(
    rules: tuple[Rule, ...], server: str, *, is_observed: bool
) -> tuple[CompiledRule, ...]:
    """Compile rules in their order; for a server that is observed, none refuses anything."""
    of_tools = patterns_by_path(c for rule in rules if rule.tools for c in rule.when)
    of_methods = patterns_by_path(c for rule in rules if not rule.tools for c in rule.when)
    of_any_tool = ToolArguments("", server, None)
    return tuple(
        _compiled_rule(
            rule, of_tools if rule.tools else of_methods, of_any_tool, is_observed=is_observed
        )
        for rule in rules
    )


def _compiled_rule(
    rule: Rule, patterns: PatternsByPath, of_any_tool: ToolArguments, *, is_observed: bool
) -> CompiledRule:
    def conditions(arguments: ToolArguments) -> tuple[Judge, ...]:
        return tuple(compiled(condition, patterns, arguments) for condition in rule.when)

    return CompiledRule(
        rule,
        conditions(of_any_tool),
        _outcome(rule, is_observed=is_observed),
        rule.name if rule.action == "log" else f"{rule.name} {_WOULD[rule.action]}",
        is_for_tools=bool(rule.tools),
        only_if_sure=rule.action == "allow" or rule.only_if_sure,
        arguments=of_any_tool,
        makes_conditions=conditions,
    )


def _outcome(rule: Rule, *, is_observed: bool) -> Judgement | None:
    if rule.action == "log" or rule.observe:
        return None
    decision = _DECISIONS[rule.action]
    if is_observed and decision is not Decision.ALLOW:
        return Judgement(Decision.ALLOW, rule.name, notes=(f"{rule.name} {_WOULD[rule.action]}",))
    return Judgement(decision, rule.name, rule.message, in_client=rule.ask_in_client)


def strictest(rules: Iterable[CompiledRule], arguments: Json) -> CompiledRule | None:
    """Return the first rule that applies and blocks; else the first that applies and asks."""
    first: CompiledRule | None = None
    for rule in rules:
        is_block = rule.rule.action == "block"
        if (is_block or first is None) and rule.applies(arguments):
            if is_block:
                return rule
            first = rule
    return first


def with_hit(rule: CompiledRule, outcome: Judgement, params: dict[str, Json]) -> Judgement:
    """Return the outcome of a rule; of a refusal with what it hit."""
    if outcome.decision is Decision.ALLOW:
        return outcome
    hit = rule.hit(rule.root(params))
    return replace(outcome, hit=hit) if hit else outcome


def _argument(condition: Condition) -> ArgumentCondition:
    return condition.condition if isinstance(condition, NegatedCondition) else condition
