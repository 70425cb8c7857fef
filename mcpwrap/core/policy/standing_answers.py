"""Questions of rules on a call, and rules with `instead_of`, which answer them for such calls."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from mcpwrap.core.policy.argument_path import steps_of
from mcpwrap.core.policy.arguments.kinds import KIND_BY_PATH, WORDS_KEYS, ArgumentKind
from mcpwrap.core.policy.compiled_rule import CompiledRule
from mcpwrap.core.policy.decision import AskingRules, Decision, Judgement
from mcpwrap.core.policy.rules import NegatedCondition, Rule
from mcpwrap.core.protocol.json_keys import folded
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.globs import matches_any

# Rules whose question is answered for equal calls only: a near miss cannot be undone.
EXACT_ONLY = frozenset({
    "default.database-reset", "default.force-push", "default.infrastructure-destroy",
    "default.recursive-delete", "default.sql-by-shell",
})  # fmt: skip


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


def asking_rules(asking: Sequence[CompiledRule], arguments: Json) -> AskingRules:
    """Return the names of the rules, and the arguments that they are about."""
    deciding: dict[str, None] = {}
    exact: dict[str, None] = {}
    for rule in asking:
        for path in _paths(rule.rule):
            kind = KIND_BY_PATH.get(path)
            if kind is None:
                deciding.update(dict.fromkeys(_first(path)))
                continue
            found = [at for at, _ in rule.arguments.of(kind, arguments)]
            exact.update(dict.fromkeys(_holding(found, kind, arguments)))
    names = tuple(rule.rule.name for rule in asking)
    return AskingRules(
        rules=names,
        deciding=tuple({**exact, **deciding}),
        exact=tuple(
            arguments if EXACT_ONLY & set(names) and isinstance(arguments, dict) else exact
        ),
    )


def _holding(found: Sequence[str], kind: ArgumentKind, arguments: Json) -> list[str]:
    """Return the arguments that hold texts of a kind, with the words of a command beside them."""
    if not found or not isinstance(arguments, dict):
        return []
    return [
        name
        for name in arguments
        if any(at == name or at.startswith((f"{name}.", f"{name}[")) for at in found)
        or (kind is ArgumentKind.SHELL and folded(name) in WORDS_KEYS)
    ]


def _named_arguments(rule: Rule) -> frozenset[str]:
    """Return the arguments of a call that the conditions of a rule name."""
    return frozenset(name for path in _paths(rule) for name in _first(path))


def _paths(rule: Rule) -> list[str]:
    abouts = (one.condition if isinstance(one, NegatedCondition) else one for one in rule.when)
    return [about.arg for about in abouts]


def _first(path: str) -> tuple[str, ...]:
    """Return the argument that the path of a condition begins with."""
    first = steps_of(path)[0]
    return (first,) if isinstance(first, str) else ()
