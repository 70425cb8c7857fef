"""Rules with `instead_of`: answers to the questions of other rules, given once for such calls."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from mcpwrap.core.policy.argument_path import steps_of
from mcpwrap.core.policy.decision import Decision, Judgement
from mcpwrap.core.policy.rules import NegatedCondition, Rule
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.globs import matches_any


class EvaluatedRule(Protocol):
    """Interface of a compiled rule."""

    @property
    def rule(self) -> Rule:
        """The rule as data."""

    @property
    def outcome(self) -> Judgement | None:
        """Its judgement; None if it only notes."""

    def applies(self, root: Json) -> bool:
        """Return whether its conditions hold."""


class StandingAnswers:
    """Answers of one server's policy, in the order of the files."""

    def __init__(self, rules: Sequence[EvaluatedRule]) -> None:
        self._rules = tuple(rules)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._rules)

    def answer(
        self, tool: str, asking: Iterable[EvaluatedRule], arguments: Json
    ) -> Judgement | None:
        """Return the judgement of the first rule that answers all questions on a call.

        `asking` are all rules that would refuse the call or ask about it: one that blocks is never
        answered. A call with an argument that no condition names is not answered either, since the
        person who gave the answer did not see such a call.
        """
        refusing = list(asking)
        if any(_blocks(rule) for rule in refusing) or not isinstance(arguments, dict):
            return None
        names = {rule.rule.name for rule in refusing}
        for rule in self._rules:
            if (
                matches_any(rule.rule.tools, tool)
                and names.issubset(rule.rule.instead_of)
                and arguments.keys() <= _named_arguments(rule.rule)
                and rule.applies(arguments)
            ):
                return rule.outcome
        return None


def _blocks(rule: EvaluatedRule) -> bool:
    return rule.outcome is not None and rule.outcome.decision is Decision.BLOCK


def _named_arguments(rule: Rule) -> frozenset[str]:
    """Return the arguments of a call that the conditions of a rule name."""
    abouts = (one.condition if isinstance(one, NegatedCondition) else one for one in rule.when)
    firsts = (steps_of(about.arg)[0] for about in abouts)
    return frozenset(step for step in firsts if isinstance(step, str))
