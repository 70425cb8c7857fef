"""Conversion of a policy of MCP Sentinel into ours, as the text of a file.

A rule of Sentinel leaves out a call without its argument. Ours counts a missing argument as one
that cannot be judged, so a converted condition has a `default` for which the rule does not apply.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, assert_never

import msgspec

from mcpwrap.config.policy.errors import Flaw, PolicyError, SourcePosition
from mcpwrap.config.policy.sentinel.python_regex import is_ascii_in_re2, literal, re2_of
from mcpwrap.config.policy.sentinel.sentinel_file import SentinelCondition, SentinelRule
from mcpwrap.config.policy.value_parsers import MAX_MESSAGE_CHARS, glob, rule_name
from mcpwrap.config.policy.yaml_scalars import WORDS_TO_SOME
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core.policy.regex import Pattern
from mcpwrap.core.text.sanitise import one_line

T = TypeVar("T")

USUAL_CALLS = "100/min"  # MCP_MAX_CALLS_PER_TOOL and MCP_CALL_WINDOW_SECONDS, where they are unset
MAX_NAME_CHARS = 64
ABSENT = "(absent)"  # a text to which a rule for every text does not apply
_HEAD = """\
# Converted from a policy of MCP Sentinel. What to know:
# - A rule does not apply to a call without its argument, as in Sentinel: each `default` is a text
#   for which it does not. Remove them to make a rule strict: it then applies to such a call, too.
# - An argument that is not text, or that has another one of a similar name beside it, cannot be
#   judged: rules that block or ask for approval apply to it.
# - Patterns are searched for in the whole text. Sentinel reads its first 10000 characters.
# - The default policy is in force beside these rules: `mcpwrap policy default show`.
version: 1
default: allow
"""
_NUL = "\0"  # a text with it cannot be judged
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.*/-]*")
_PLAIN_KEY = re.compile(r"[^.\[\]\"\s]+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class ConvertedTest:
    """Test of a condition: as YAML, and as a pattern."""

    text: str
    pattern: Pattern
    is_negated: bool
    value: str  # of the condition


@dataclass(frozen=True, slots=True)
class ConvertedRule:
    """Rule in the format of mcpwrap, as lines of YAML."""

    name: str
    line: int  # of the rule in the file of Sentinel
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConvertedPolicy:
    """Policy of mcpwrap: its text, its rules, and warnings of what differs from Sentinel."""

    text: str
    rules: tuple[ConvertedRule, ...]
    warnings: tuple[Flaw, ...]


def convert(rules: Sequence[SentinelRule], *, server: str, calls: str) -> ConvertedPolicy:
    """Return the policy that decides as Sentinel does by these rules.

    `server` is a glob of the servers that they are for, `calls` the rate of calls of one tool; ""
    is all servers, and no limit.

    Raises:
        PolicyError: with every part of a rule that cannot be converted.
    """
    flaws: list[Flaw] = []
    warnings: list[Flaw] = []
    found: list[ConvertedRule] = []
    names: set[str] = set()
    for number, rule in enumerate(rules, start=1):
        name = _name(rule, number, names)
        names.add(name)
        warnings += _warnings(rule)
        found += _converted(rule, name, server, flaws)
    if flaws:
        raise PolicyError(flaws)
    return ConvertedPolicy(_text(found, server, calls), tuple(found), tuple(warnings))


def _text(rules: Sequence[ConvertedRule], server: str, calls: str) -> str:
    of = f"server: {quoted(server)}, " if server else ""
    lines = [f"limits: {{{of}calls: {calls}}}"] if calls else []
    lines += ["rules:"] if rules else []
    lines += [line for rule in rules for line in rule.lines]
    return _HEAD + "".join(f"{line}\n" for line in lines)


def _name(rule: SentinelRule, number: int, taken: Collection[str]) -> str:
    """Return a name for a rule: its id, or one made from its name."""
    plain = unicodedata.normalize("NFKD", rule.id or rule.name).encode("ascii", "ignore").decode()
    base = _NOT_IN_NAMES.sub("-", plain).strip("_.-")
    base = base.removeprefix("default.")[:MAX_NAME_CHARS]
    try:
        base = rule_name(base)
    except BadValueError:
        base = f"rule-{number}"
    name, count = base, 1
    while name in taken:
        count += 1
        ending = f"-{count}"
        name = base[: MAX_NAME_CHARS - len(ending)] + ending
    return name


def _converted(
    rule: SentinelRule, name: str, server: str, flaws: list[Flaw]
) -> Iterator[ConvertedRule]:
    """Yield one rule; if one condition is enough, one for each condition, in the same order."""
    tool = _or_flaw(lambda: glob(rule.tool), rule.tool_mark, flaws)
    found = [_or_flaw(partial(_test, one), one.mark, flaws) for one in rule.conditions]
    tests = [test for test in found if test is not None]
    groups = [tests] if rule.match_type == "all" else [[test] for test in tests]
    for number, group in enumerate(groups, start=1):
        ending = f"-{number}" if len(groups) > 1 else ""
        whole = name[: MAX_NAME_CHARS - len(ending)] + ending
        texts = {"name": whole, "server": server, "tool": tool or "", "action": rule.action}
        message = _message(rule.description)
        if rule.action in {"block", "allow_with_approval"} and message:
            texts["message"] = message
        lines = [f"    {key}: {quoted(text)}" for key, text in texts.items() if text]
        lines += ["    when:", *_conditions(quoted(_path(rule.argument)), group)]
        title = [f"  # {one_line(rule.name)}"] if rule.name else []
        yield ConvertedRule(whole, rule.mark.line, (*title, f"  - {lines[0].strip()}", *lines[1:]))


def _or_flaw(convert: Callable[[], T], mark: SourcePosition, flaws: list[Flaw]) -> T | None:
    try:
        return convert()
    except BadValueError as bad:
        flaws.append(Flaw(mark, bad.problem, bad.fix, code=bad.code))
        return None


def _test(condition: SentinelCondition) -> ConvertedTest:
    """Return the test of a condition.

    Raises:
        BadValueError: it is not a pattern that RE2 has.
    """
    value, flag = condition.value, "(?i)" if condition.ignores_case else ""
    match condition.operator:
        case "contains" | "not_contains":
            pattern = flag + literal(value)
        case "equals":
            pattern = f"{flag}^(?:{literal(value)})$"
        case "regex":
            pattern = flag + re2_of(value)
        case _:
            assert_never(condition.operator)
    text = f"matches: {quoted(pattern)}"
    if condition.operator == "equals" and not flag:
        text = f"equals: {quoted(value)}"
    is_negated = condition.operator == "not_contains"
    return ConvertedTest(
        f"not: {{{text}}}" if is_negated else text, Pattern(pattern), is_negated, value
    )


def _conditions(path: str, tests: Sequence[ConvertedTest]) -> Iterator[str]:
    """Yield the conditions of a rule, which does not apply if the argument is absent."""
    candidates = ("", *(test.value for test in tests if _NUL not in test.value))
    absent = [text for text in candidates if not _hold(tests, text)]
    default = quoted((absent or [ABSENT])[0])
    # Without one, the tests hold for every text, as far as can be seen.
    guard = [] if absent else [f"not: {{equals: {default}}}"]
    for text in (*guard, *(test.text for test in tests)):
        yield f"      - {{arg: {path}, {text}, default: {default}}}"


def _hold(tests: Sequence[ConvertedTest], text: str) -> bool:
    return all(test.pattern.is_in(text.encode()) != test.is_negated for test in tests)


def _path(argument: str) -> str:
    """Return the path of an argument; Sentinel takes its name as it is, dots and all."""
    if _PLAIN_KEY.fullmatch(argument):
        return argument
    return f"[{msgspec.json.encode(argument).decode()}]"


def _message(description: str) -> str:
    return one_line(" ".join(description.split()))[:MAX_MESSAGE_CHARS]


def _warnings(rule: SentinelRule) -> Iterator[Flaw]:
    if not rule.name and rule.action == "block":
        yield Flaw(
            rule.mark,
            "Sentinel lets pass what a rule without a name blocks; the converted rule blocks it",
            "if it should pass, write `action: allow`",
            code="E-POLICY-SENTINEL-NO-NAME",
        )
    if rule.match_type == "any" and not rule.conditions:
        yield Flaw(
            rule.mark,
            "a rule without conditions, of which any must hold, never applies; it is left out",
            "remove it, or `match_type`",
            code="E-POLICY-SENTINEL-NO-EFFECT",
        )
    for one in rule.conditions:
        if one.operator == "regex" and is_ascii_in_re2(one.value):
            yield Flaw(
                one.mark,
                r"`\d`, `\w`, `\s` and `\b` are limited to ASCII in RE2, and not in Sentinel",
                r"where that matters write `\p{Nd}`, `\p{L}` or `\p{Z}` in the converted rule",
                code="E-POLICY-SENTINEL-ASCII",
            )


def quoted(text: str) -> str:
    """Return a text as YAML: in quotes, unless all readers of YAML take it for this text."""
    if _PLAIN.fullmatch(text) and text.lower() not in WORDS_TO_SOME:
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return char if char.isprintable() else f"\\U{ord(char):08x}"
