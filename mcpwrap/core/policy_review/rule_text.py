"""Suggested rule and its cases as YAML, for the files of `mcpwrap policy accept`.

Each value is written as JSON in ASCII, as YAML takes it.
"""

import json
from typing import assert_never

import msgspec

from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Condition,
    Equals,
    Inside,
    Length,
    Matches,
    NegatedTest,
    OneOf,
    Range,
    Shell,
    Sql,
    Test,
)
from mcpwrap.core.policy_review.suggestions import Suggestion
from mcpwrap.core.protocol.json_value import Json

_RULES_HEAD = """\
# Rules of `mcpwrap policy accept`. Each answers the questions of the rules that it names.
# To revoke one, delete it here, and keep the file; then: sudo systemctl reload mcpwrap-gate
version: 1
"""
_RULES_KEY = "rules:"
_CASES_HEAD = """\
# Cases of the rules of `mcpwrap policy accept`; `mcpwrap policy test` plays them.
"""
MAX_CASES = 20
_MAX_CASE_CHARS = 1000  # of arguments: YAML takes a key of up to 1024
_MAX_CASE_DEPTH = 20


def with_rule(before: str, suggestion: Suggestion) -> str:
    """Return the text of the file of accepted rules, with one more; "" stands for no file."""
    lines = (before or _RULES_HEAD).rstrip("\n").split("\n")
    key = [] if _RULES_KEY in lines else [_RULES_KEY]
    return "\n".join([*lines, *key, *rule_lines(suggestion), ""])


def with_cases(before: str, suggestion: Suggestion) -> str:
    """Return the text of the file of cases, with those of one more rule; "" stands for no file."""
    lines = (before or _CASES_HEAD).rstrip("\n").split("\n")
    return "\n".join([*lines, *case_lines(suggestion), ""])


def rule_lines(suggestion: Suggestion) -> list[str]:
    """Return the lines of the rule, as an item of `rules`."""
    rule = suggestion.rule
    when = [f"      - {_condition(one)}" for one in rule.when]
    return [
        f"  # {summary(suggestion)}",
        f"  - name: {rule.name}",
        f"    server: {_json(list(rule.servers))}",
        f"    tool: {_json(list(rule.tools))}",
        *(["    when:", *when] if when else []),
        "    action: allow",
        f"    instead_of: {_json(list(rule.instead_of))}",
    ]


def case_lines(suggestion: Suggestion) -> list[str]:
    """Return the lines of the cases: calls that were approved, and then those that were refused.

    An agent chooses what is refused: calls that YAML does not take are left out.
    """
    approved = [call for call in suggestion.approved if _fits(call)][:MAX_CASES]
    refused = [one for one in suggestion.refused if _fits(one[0])][:MAX_CASES]
    name = suggestion.rule.name
    return [
        *(_case(suggestion, call, "approved", f"expect: allow, rule: {name}") for call in approved),
        *(_case(suggestion, call, "refused", f"expect: {expect}") for call, expect in refused),
    ]


def summary(suggestion: Suggestion) -> str:
    """Return what the rule would have done to the questions of the past."""
    left = suggestion.asked - suggestion.answered
    return f"{suggestion.asked} questions would have been {left}; {_denials(suggestion.denied)}"


def _denials(count: int) -> str:
    if count == 0:
        return "you denied none"
    return (
        "your denial would not pass" if count == 1 else f"none of your {count} denials would pass"
    )


def _case(suggestion: Suggestion, call: dict[str, Json], what: str, expect: str) -> str:
    rule = suggestion.rule
    name, server, tool = (
        _json(text) for text in (f"{what}, {rule.name}", *rule.servers, *rule.tools)
    )
    about = f"name: {name}, server: {server}, tool: {tool}, arguments: {_json(call)}"
    return f"- {{{about}, {expect}}}"


def _fits(call: dict[str, Json]) -> bool:
    return not _is_deep(call, _MAX_CASE_DEPTH) and len(_json(call)) <= _MAX_CASE_CHARS


def _is_deep(value: Json, most: int) -> bool:
    """Return whether a value has more levels of objects and lists than this."""
    if not isinstance(value, (dict, list)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return most == 0 or any(_is_deep(one, most - 1) for one in inner)


def _condition(condition: Condition) -> str:
    if not isinstance(condition, ArgumentCondition) or isinstance(condition.test, NegatedTest):
        raise TypeError("suggestions have plain conditions")
    default = "" if condition.default is None else f", default: {condition.default}"
    return f"{{arg: {_json(condition.arg)}, {_test(condition.test)}{default}}}"


def _test(test: Test) -> str:
    match test:
        case Equals(json=text):
            return f"equals: {_ascii(text)}"
        case OneOf(jsons=texts):
            return f"one_of: [{', '.join(map(_ascii, texts))}]"
        case Matches(pattern=pattern):
            return f"matches: {_json(pattern)}"
        case Inside(folder=folder):
            return f"inside: {_json(folder)}"
        case Length(most=most):
            return f"length: {{max: {most}}}"
        case Range(least=least, most=most):
            return f"range: {{min: {_json(least)}, max: {_json(most)}}}"
        case NegatedTest() | Sql() | Shell():
            raise TypeError("suggestions have no such test")
        case _:
            assert_never(test)


def _ascii(text: str) -> str:
    value: Json = msgspec.json.decode(text)
    return _json(value)


def _json(value: Json | list[str]) -> str:
    """Return JSON in printable ASCII, with a space after each comma and colon, as YAML needs.

    YAML takes no pairs of surrogates, which JSON in ASCII has: it has escapes of eight digits.
    """
    return "".join(map(_escaped, json.dumps(value, ensure_ascii=False)))


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x7F:
        return character
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
