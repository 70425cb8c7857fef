"""Part of a call that a condition holds for, as a refusal names it."""

from collections.abc import Iterable

import msgspec

from mcpwrap.core.policy.argument_path import PathMarker, PathValue, found_at, steps_of
from mcpwrap.core.policy.arguments.kinds import KIND_BY_PATH
from mcpwrap.core.policy.arguments.selection import ToolArguments
from mcpwrap.core.policy.conditions import judge_of
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Condition,
    NegatedCondition,
    Shell,
    Sql,
    Test,
)
from mcpwrap.core.policy.shell.judge import shell_hit
from mcpwrap.core.policy.sql.statements import sql_hit
from mcpwrap.core.policy.tristate import FAILS, HOLDS
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.sanitise import shown

_ABSENT = (None, PathMarker.MISSING)
MAX_CHARS = 157  # and three dots


def hit_of(condition: Condition, root: Json, arguments: ToolArguments) -> str:
    """Return a path and the part of the value there; "" if the condition names no value.

    It is for the sender of the call, who knows the value: no log may have it.
    """
    if isinstance(condition, NegatedCondition):
        return ""
    judge = judge_of(condition.test)
    doubtful = ""
    for path, value in _values(condition, root, arguments):
        if isinstance(value, PathMarker):
            doubtful = doubtful or f"`{path}` cannot be judged"
            continue
        truth = judge(value)
        if truth is HOLDS:
            return _cut(f"`{path}`: {_part(condition.test, value)}")
        if truth is not FAILS:
            doubtful = doubtful or f"`{path}` cannot be judged: {_text(value)}"
    return _cut(doubtful)


def _values(
    condition: ArgumentCondition, root: Json, arguments: ToolArguments
) -> Iterable[tuple[str, PathValue]]:
    kind = KIND_BY_PATH.get(condition.arg)
    if kind is not None:
        return arguments.of(kind, root)
    default = condition.default
    found = found_at(root, steps_of(condition.arg))
    if default is None:
        return [(condition.arg, value) for value in found]
    return [
        (condition.arg, msgspec.json.decode(default) if value in _ABSENT else value)
        for value in found
    ]


def _part(test: Test, value: Json) -> str:
    """Return the part of a value that a test holds for; most tests are of the whole."""
    if isinstance(test, Sql) and isinstance(value, str):
        return _text(sql_hit(value, test.test, test.dialect))
    if isinstance(test, Shell) and isinstance(value, str):
        return _text(shell_hit(value, test))
    return _text(value)


def _text(value: Json) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return " ".join(text[: 4 * MAX_CHARS].split())


def _cut(text: str) -> str:
    return shown(text, MAX_CHARS)
