"""Explanation of a policy decision, rule by rule and condition by condition."""

from dataclasses import dataclass
from typing import assert_never

import msgspec

from mcpwrap.core.policy.argument_path import PathMarker, PathValue, found_at, steps_of
from mcpwrap.core.policy.arguments.kinds import KIND_BY_PATH, ArgumentKind
from mcpwrap.core.policy.compiled import CALL, CompiledPolicy
from mcpwrap.core.policy.compiled_rule import CompiledRule, strictest
from mcpwrap.core.policy.decision import Decision, Judgement
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
    Rule,
    Shell,
    Sql,
    Test,
)
from mcpwrap.core.policy.tristate import UNJUDGEABLE
from mcpwrap.core.protocol.json_value import Json

_KINDS = {ArgumentKind.SQL: "SQL", ArgumentKind.SHELL: "a command line"}
MAX_SHOWN_CHARS = 60
DOES_NOT_APPLY = "does not apply"
_NO_ARGUMENTS: dict[str, Json] = {}


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
    since: str = ""  # the version that brought it, if it is a rule of the default policy


@dataclass(frozen=True, slots=True)
class Explanation:
    """All rules that were evaluated, and the decision."""

    rules: tuple[ExplainedRule, ...]  # the operator's
    judgement: Judgement
    is_hidden: bool
    limits: LimitsEntry | None
    default_rules: tuple[ExplainedRule, ...] = ()  # of the default policy, in the same way
    default_limits: LimitsEntry | None = None
    elsewhere: tuple[str, ...] = ()  # the operator's rules that are for other projects
    how: str = ""  # how the two came to the decision; "" if the default policy has no part in it


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
    judgement = policy.judge(method, params)
    answers = policy.answers_for_tool(name) if name else ()
    explained += [_rule(rule, params, applies=rule.rule.name == judgement.rule) for rule in answers]
    is_answered = any(rule.rule.name == judgement.rule for rule in answers)
    defaults = policy.default_rules_for_tool(name) if name else ()
    return Explanation(
        tuple(explained),
        judgement,
        is_hidden=bool(name) and policy.hides(name),
        limits=policy.limits_for(name) if name else None,
        default_rules=tuple(
            _rule(rule, params, applies=rule.applies(rule.root(params))) for rule in defaults
        ),
        default_limits=policy.default_limits_for(name) if name else None,
        elsewhere=policy.rules_elsewhere(method, name),
        how=_how(policy, method, params, name) if defaults and not is_answered else "",
    )


def _how(policy: CompiledPolicy, method: str, params: dict[str, Json], tool: str) -> str:
    """Return how the default policy took part in a decision; "" if none of its rules applies."""
    own = policy.judge_by_operator(method, params)
    rules = policy.default_rules_for_tool(tool)
    found = strictest(rules, params.get("arguments", _NO_ARGUMENTS))
    if found is None:
        return ""
    name, by = found.rule.name, f"the rule {own.rule}" if own.rule else "the policy's `default`"
    is_question = found.rule.action != "block"
    if own.decision is Decision.BLOCK:
        text = f"{by} blocks: {name} is not reached"
    elif is_question and policy.lifts(own, tool):
        text = f"{by} allows this tool by its name, which lifts the question of {name}"
    elif found.outcome is None or found.outcome.decision is Decision.ALLOW:
        text = f"the server is under `observe`: {name} is noted only"
    elif not is_question:
        text = f"{name} blocks, although {by} does not"
    elif own.decision is Decision.NEEDS_APPROVAL:
        text = f"{by} asks, so {name} does not ask again"
    else:
        text = f"{name} asks: a rule with `tool: {tool}` and `action: allow` would lift that"
    return text


def _rule(rule: CompiledRule, params: dict[str, Json], *, applies: bool) -> ExplainedRule:
    root = rule.root(params)
    pairs = zip(rule.rule.when, rule.conditions, strict=True)
    conditions = tuple(
        ExplainedCondition(words_of(condition), judge(root).value, _found(condition, rule, root))
        for condition, judge in pairs
    )
    if not applies:
        does = DOES_NOT_APPLY
    elif rule.rule.instead_of:
        does = f"allows it instead of the question of {', '.join(rule.rule.instead_of)}"
    elif rule.outcome is None:
        does = f"notes `{rule.note}`; the next rule is evaluated"
    elif any(judge(root) is UNJUDGEABLE for judge in rule.conditions):
        does = "applies: a condition that cannot be judged counts as holding"
    else:
        does = "applies"
    return ExplainedRule(rule.rule.name, rule.rule.action, does, conditions, rule.rule.since)


def words_of(condition: Condition) -> str:
    """Return a condition in words."""
    if isinstance(condition, NegatedCondition):
        return f"not ({words_of(condition.condition)})"
    default = f" ({condition.default} if it is missing)" if condition.default else ""
    kind = KIND_BY_PATH.get(condition.arg)
    about = condition.arg if kind is None else f"an argument for {_KINDS[kind]}"
    return f"{about}{default} {_test(condition.test)}"


def words_of_rule(rule: Rule) -> str:
    """Return the effect of a rule in words, in one line."""
    effects = {
        "block": "blocks", "allow": "allows", "log": "notes", "hide": "hides",
        "allow_with_approval": "asks a person for approval of",
    }  # fmt: skip
    what = words_of_tools(rule.tools) if rule.tools else ", ".join(rule.methods)
    conditions = " and ".join(map(words_of, rule.when))
    when = f", if {conditions}" if conditions else ""
    if rule.projects:
        what += f" in {' or '.join(rule.projects)}"
    return f"{effects[rule.action]} {what}{when}" + (f": {rule.message}" if rule.message else "")


def words_of_tools(globs: tuple[str, ...]) -> str:
    """Return which calls a rule or a limit is for."""
    return f"calls of {'any tool' if '*' in globs else ', '.join(globs)}"


def words_of_limits(entry: LimitsEntry) -> str:
    """Return limits in words, in one line."""
    parts = {
        f"{entry.calls} calls in {entry.calls_window_s} s": entry.calls,
        f"{entry.identical_calls} identical calls in {entry.window_s} s": entry.identical_calls,
        f"{entry.repeated_calls} repeated calls in {entry.repeated_s} s": entry.repeated_calls,
        f"{entry.failures} failures in a row": entry.failures,
        f"cool down {entry.cool_down_s} s": entry.cool_down_s,
    }
    return ", ".join(text for text, value in parts.items() if value is not None)


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
        case Sql() | Shell():
            return _of_language(test)
        case _:
            assert_never(test)


def _of_language(test: Sql | Shell) -> str:
    if isinstance(test, Sql):
        return f"is SQL with {test.test} ({test.dialect})"
    if test.test == "runs":
        return f"runs {', '.join(test.commands)}"
    return f"is a command line that {test.test.replace('_', ' ')}"


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


def _found(condition: Condition, rule: CompiledRule, root: Json) -> tuple[str, ...]:
    about = condition.condition if isinstance(condition, NegatedCondition) else condition
    kind = KIND_BY_PATH.get(about.arg)
    if kind is not None:
        return tuple(f"{at}: {_shown(value)}" for at, value in rule.arguments.of(kind, root))
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
