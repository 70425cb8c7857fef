"""Explanation of a policy decision, rule by rule and condition by condition."""

from dataclasses import dataclass
from typing import assert_never

import msgspec

from mcpwrap.core.policy.argument_path import PathMarker, PathValue, found_at, steps_of
from mcpwrap.core.policy.compiled import CALL, CompiledPolicy, CompiledRule
from mcpwrap.core.policy.decision import Judgement
from mcpwrap.core.policy.rules import (
    Condition,
    Equals,
    Inside,
    Length,
    LimitsEntry,
    Matches,
    NegatedCondition,
    NegatedTest,
    OneOf,
    Range,
    Sql,
    Test,
)
from mcpwrap.core.policy.tristate import UNJUDGEABLE
from mcpwrap.core.protocol.json_value import Json

MAX_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class ExplainedCondition:
    """One condition in words, and its result."""

    says: str
    truth: str
    found: tuple[str, ...]  # the values at the path, or why a value is missing


@dataclass(frozen=True, slots=True)
class ExplainedRule:
    """One rule that was evaluated."""

    name: str
    action: str
    does: str  # its effect on this message
    conditions: tuple[ExplainedCondition, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """All rules that were evaluated, and the decision."""

    rules: tuple[ExplainedRule, ...]
    judgement: Judgement
    is_hidden: bool
    limits: LimitsEntry | None


def explain(policy: CompiledPolicy, method: str, params: dict[str, Json]) -> Explanation:
    """Judge a message again, and return what was evaluated, up to the rule that decides."""
    tool = params.get("name") if method == CALL else None
    name = tool if isinstance(tool, str) else ""
    rules = policy.rules_for_tool(name) if method == CALL else policy.rules_for_method(method)
    explained = []
    for rule in rules:
        applies = rule.applies(rule.root(params))
        explained.append(_rule(rule, params, applies=applies))
        if applies and rule.outcome is not None:
            break
    return Explanation(
        tuple(explained),
        policy.judge(method, params),
        is_hidden=bool(name) and policy.hides(name),
        limits=policy.limits_for(name) if name else None,
    )


def _rule(rule: CompiledRule, params: dict[str, Json], *, applies: bool) -> ExplainedRule:
    root = rule.root(params)
    pairs = zip(rule.rule.when, rule.conditions, strict=True)
    conditions = tuple(
        ExplainedCondition(words_of(condition), judge(root).value, _found(condition, root))
        for condition, judge in pairs
    )
    if not applies:
        does = "does not apply"
    elif rule.outcome is None:
        does = f"notes `{rule.note}`; the next rule is evaluated"
    elif any(judge(root) is UNJUDGEABLE for judge in rule.conditions):
        does = "applies: a condition that cannot be judged counts as holding"
    else:
        does = "applies"
    return ExplainedRule(rule.rule.name, rule.rule.action, does, conditions)


def words_of(condition: Condition) -> str:
    """Return a condition in words."""
    if isinstance(condition, NegatedCondition):
        return f"not ({words_of(condition.condition)})"
    default = f" ({condition.default} if it is missing)" if condition.default else ""
    return f"{condition.arg}{default} {_test(condition.test)}"


def _test(test: Test) -> str:
    match test:
        case NegatedTest(test=inner):
            return f"not ({_test(inner)})"
        case Equals() | OneOf() | Length() | Range():
            return _of_value(test)
        case Matches(pattern=pattern):
            return f"matches {pattern!a}"
        case Inside(folder=folder):
            return f"is inside {folder}"
        case Sql(test=what, dialect=dialect):
            return f"is SQL with {what} ({dialect})"
        case _:
            assert_never(test)


def _of_value(test: Equals | OneOf | Length | Range) -> str:
    match test:
        case Equals(json=text):
            return f"equals {text}"
        case OneOf(jsons=texts):
            return f"is one of {', '.join(texts)}"
        case Length(least=least, most=most):
            return f"has a length {_bounds(least, most)}"
        case Range(least=least, most=most):
            return f"is {_bounds(least, most)}"
        case _:
            assert_never(test)


def _bounds(least: float | None, most: float | None) -> str:
    parts = [f"from {least}"] if least is not None else []
    parts += [f"up to {most}"] if most is not None else []
    return " ".join(parts)


def _found(condition: Condition, root: Json) -> tuple[str, ...]:
    about = condition.condition if isinstance(condition, NegatedCondition) else condition
    return tuple(map(_shown, found_at(root, steps_of(about.arg))))


def _shown(value: PathValue) -> str:
    """Return a value as JSON in ASCII, so that it cannot control a terminal."""
    if value is PathMarker.MISSING:
        return "there is no value"
    if value is PathMarker.RIVALLED:
        return "another key is the same to some reader, or there are too many keys"
    if isinstance(value, PathMarker):
        return "the value there has no such parts"
    text = msgspec.json.encode(value).decode()
    shown = text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}..."
    return shown.encode("ascii", "backslashreplace").decode().replace("\x7f", r"\x7f")
