"""Suggested rules from approvals given, each proven by replay of what was refused.

A suggestion is an `allow` for one tool of one server that answers the questions of named rules,
`instead_of`, for calls like the approved ones. It names each argument of a call, and lets none of
the calls pass that a person denied, or that were refused.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from mcpwrap.core.policy.argument_path import steps_of
from mcpwrap.core.policy.arguments.kinds import SHELL_ARGUMENTS, SQL_ARGUMENTS
from mcpwrap.core.policy.cases import Expected
from mcpwrap.core.policy.compiled import CALL, CompiledPolicy
from mcpwrap.core.policy.compiled_rule import CompiledRule
from mcpwrap.core.policy.decision import Decision
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Condition,
    Equals,
    OneOf,
    Policy,
    Rule,
    Test,
)
from mcpwrap.core.policy.standing_answers import EXACT_ONLY
from mcpwrap.core.policy_review.common_values import (
    common_tests,
    distinct,
    exact_test,
    free_test,
    shape_of,
)
from mcpwrap.core.policy_review.questions import Answer, CallHistory, CallKey
from mcpwrap.core.protocol.json_value import Json

Arguments = dict[str, Json]
Compile = Callable[[Policy, str], CompiledPolicy]
MIN_APPROVED = 2  # questions: a single approval is no habit
_ID_DIGITS = 8
_MAX_KEYS = 30
_NAME = "accepted-"
_KINDS = {SQL_ARGUMENTS, SHELL_ARGUMENTS}


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Rule that would have answered questions, and the proof that it answers no others."""

    id: str
    rule: Rule
    approved: tuple[Arguments, ...]  # different calls that it allows
    refused: tuple[tuple[Arguments, Expected], ...]  # different calls that stay refused
    asked: int  # questions about calls of this tool
    answered: int  # of these, by this rule
    denied: int  # of these, by a person


@dataclass(frozen=True, slots=True)
class _Family:
    """Approved calls that differ in one deciding argument, and in arguments that decide nothing."""

    varying: str  # "" if the calls are alike in all deciding arguments
    deciding: frozenset[str]
    calls: list[Arguments]


def suggest(
    policy: Policy, by_key: Mapping[CallKey, CallHistory], compile_: Compile
) -> list[Suggestion]:
    """Return the suggestions, those that answer most questions first."""
    found: list[Suggestion] = []
    for key, history in by_key.items():
        found += _of_tool(policy, key, history, compile_)
    return sorted(found, key=lambda one: (-one.answered, one.id))


def _of_tool(
    policy: Policy, key: CallKey, history: CallHistory, compile_: Compile
) -> Iterator[Suggestion]:
    before = compile_(policy, key.server)
    by_rules: dict[tuple[str, ...], list[Arguments]] = {}
    deciding: dict[tuple[str, ...], frozenset[str] | None] = {}
    for call in history.with_answer(Answer.APPROVED):
        asking = before.refusing(key.tool, {"name": key.tool, "arguments": call})
        names = tuple(rule.rule.name for rule in asking)
        is_asked = _decision(before, key.tool, call) is Decision.NEEDS_APPROVAL
        if is_asked and len(call) <= _MAX_KEYS:
            by_rules.setdefault(names, []).append(call)
            deciding[names] = _deciding(asking)
    for names, calls in by_rules.items():
        for family in _families(calls, deciding[names]):
            if suggestion := _proven(policy, key, history, compile_, (names, family)):
                yield suggestion


def _deciding(asking: Sequence[CompiledRule]) -> frozenset[str] | None:
    """Return the arguments that the questions of these rules are about; None for all."""
    named: set[str] = set()
    for rule in asking:
        paths = {each.arg for each in map(_about, rule.rule.when)}
        if not paths or paths & _KINDS:
            return None
        named |= {str(steps_of(path)[0]) for path in paths}
    return frozenset(named)


def _about(condition: Condition) -> ArgumentCondition:
    return condition if isinstance(condition, ArgumentCondition) else condition.condition


def _families(calls: list[Arguments], deciding: frozenset[str] | None) -> Iterator[_Family]:
    keys = {key for call in calls for key in call}
    about = frozenset(keys if deciding is None else keys & deciding)
    if not any(isinstance(call.get(key), str) for call in calls for key in about):
        about = frozenset(keys)  # `force: true` does not tell what is overwritten
    counts = {key: len(distinct(_values(calls, key))) for key in sorted(about)}
    varying = max(counts, key=lambda key: counts[key], default="")
    groups: dict[bytes, list[Arguments]] = {}
    for call in calls:
        rest = {key: call[key] for key in sorted(about - {varying}) if key in call}
        groups.setdefault(msgspec.json.encode([rest, varying in call]), []).append(call)
    for group in groups.values():
        for alike in _by_shape(group, varying):
            if len(alike) >= MIN_APPROVED:
                yield _Family(varying, about, alike)


def _by_shape(calls: list[Arguments], varying: str) -> list[list[Arguments]]:
    """Return the calls divided by the shape of one argument; those of rare shapes together."""
    by_shape: dict[str, list[Arguments]] = {}
    for call in calls:
        by_shape.setdefault(shape_of(varying, call.get(varying)), []).append(call)
    rest = by_shape.pop("", [])
    groups: list[list[Arguments]] = []
    for group in by_shape.values():
        if common_tests(varying, distinct(_values(group, varying))):
            groups.append(group)
        else:
            rest += group
    return [*groups, rest]


def _proven(
    policy: Policy,
    key: CallKey,
    history: CallHistory,
    compile_: Compile,
    of: tuple[tuple[str, ...], _Family],
) -> Suggestion | None:
    """Return the first rule for these calls that lets no refused call pass; None without one."""
    names, family = of
    refused = history.must_not_pass()
    for when in _candidates(family, is_exact=bool(EXACT_ONLY & set(names))):
        rule = _rule(key, names, when)
        after = compile_(replace(policy, rules=(*policy.rules, rule)), key.server)
        if any(_decider(after, key.tool, call) == rule.name for call in refused):
            continue
        if all(_passes(after, key.tool, call) for call in family.calls):
            return _suggestion(rule, after, key, history)
    return None


def _candidates(family: _Family, *, is_exact: bool) -> Iterator[tuple[Condition, ...]]:
    """Yield conditions on all arguments, widest first."""
    values = distinct(_values(family.calls, family.varying))
    tests: list[Test | None] = [] if is_exact else list(common_tests(family.varying, values))
    tests.append(exact_test(values) if values else None)
    for test in tests:
        for is_free in (False,) if is_exact else (True, False):
            found = _conditions(family, test, is_free=is_free)
            if found is not None:
                yield found


def _conditions(
    family: _Family, varied: Test | None, *, is_free: bool
) -> tuple[Condition, ...] | None:
    """Return a condition on each argument; None if one has too many values."""
    conditions: list[Condition] = []
    for key in sorted({key for call in family.calls for key in call}):
        values = distinct(_values(family.calls, key))
        is_everywhere = all(key in call for call in family.calls)
        if key == family.varying:
            test = varied
        elif is_free and is_everywhere and len(values) > 1 and key not in family.deciding:
            test = free_test(values)
        else:
            test = exact_test(values if is_everywhere else distinct([*values, None]))
        if test is None:
            return None
        default = None if is_everywhere else "null"
        conditions.append(ArgumentCondition(_path(key), _simplest(test), default))
    return tuple(conditions)


def _simplest(test: Test) -> Test:
    return Equals(test.jsons[0]) if isinstance(test, OneOf) and len(test.jsons) == 1 else test


def _path(key: str) -> str:
    """Return the path of an argument: `key`, or `["odd key"]`."""
    is_plain = bool(key) and not any(c in '.[]"' or c.isspace() for c in key)
    return key if is_plain else f"[{msgspec.json.encode(key).decode()}]"


def _rule(key: CallKey, names: tuple[str, ...], when: tuple[Condition, ...]) -> Rule:
    rule = Rule(
        name="",
        action="allow",
        servers=(key.server,),
        tools=(key.tool,),
        when=when,
        instead_of=tuple(sorted(names)),
    )
    digest = hashlib.sha256(msgspec.json.encode(rule, order="deterministic")).hexdigest()
    return replace(rule, name=f"{_NAME}{digest[:_ID_DIGITS]}")


def _suggestion(
    rule: Rule, after: CompiledPolicy, key: CallKey, history: CallHistory
) -> Suggestion:
    """Return the suggestion, with what its rule does to all questions about the tool."""
    questions = history.questions.values()
    calls = [question.arguments for question in questions if question.arguments is not None]
    by_rule = [call for call in calls if _decider(after, key.tool, call) == rule.name]
    return Suggestion(
        id=rule.name.removeprefix(_NAME),
        rule=rule,
        approved=tuple(_different(by_rule)),
        refused=tuple(_still_refused(after, key.tool, history.must_not_pass())),
        asked=len(questions),
        answered=len(by_rule),
        denied=sum(question.answer is Answer.DENIED for question in questions),
    )


def _still_refused(
    policy: CompiledPolicy, tool: str, calls: list[Arguments]
) -> Iterator[tuple[Arguments, Expected]]:
    """Yield refused calls with their decision now; the policy may allow some by other rules."""
    for call in _different(calls):
        decision = _decision(policy, tool, call)
        if decision is not Decision.ALLOW:
            yield call, "block" if decision is Decision.BLOCK else "needs-approval"


def _passes(policy: CompiledPolicy, tool: str, call: Arguments) -> bool:
    return _decision(policy, tool, call) is Decision.ALLOW


def _decision(policy: CompiledPolicy, tool: str, call: Arguments) -> Decision:
    return policy.judge(CALL, {"name": tool, "arguments": call}).decision


def _decider(policy: CompiledPolicy, tool: str, call: Arguments) -> str:
    return policy.judge(CALL, {"name": tool, "arguments": call}).rule


def _values(calls: Sequence[Arguments], key: str) -> list[Json]:
    return [call[key] for call in calls if key in call]


def _different(calls: Sequence[Arguments]) -> list[Arguments]:
    return [call for call in distinct(calls) if isinstance(call, dict)]
