"""Rendering of approval questions: hidden characters escaped, diff to the last approved one."""

import json
from collections.abc import Sequence

from mcpwrap.core.approval.document import Question
from mcpwrap.core.approval.views.shown_arguments import DiffLine, diff, plain_lines
from mcpwrap.core.protocol.json_keys import folded
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import without
from mcpwrap.core.text.sanitise import visible

MAX_COMPARED_LINES = 5000  # the time of a diff grows with the square


def pretty(question: Question) -> str:
    r"""Return the arguments, or all params if there are others, as JSON without hidden characters.

    Newlines inside a string stay `\n`, so each line on the screen is a line of JSON, and the agent
    cannot add lines. Characters that reorder or hide text are escaped, as `\u202e`.
    """
    return pretty_params(question.params)


def pretty_params(params: dict[str, Json], deciding: Sequence[str] = ()) -> str:
    """Return the same text for params that are not part of a question.

    The arguments of the names `deciding` are first.
    """
    rest = without(params, "_meta", "name", "arguments")
    value = without(params, "_meta") if rest else params.get("arguments", {})
    if isinstance(value, dict):
        first = {folded(name) for name in deciding}
        names = sorted(value, key=lambda name: (folded(name) not in first, name))
        value = {name: _sorted(value[name]) for name in names}
    return visible(json.dumps(value, indent=2, ensure_ascii=False))


def _sorted(value: Json) -> Json:
    match value:
        case dict():
            return {name: _sorted(value[name]) for name in sorted(value)}
        case list():
            return [_sorted(one) for one in value]
        case _:
            return value


def difference(
    before: Question, now: Question, max_lines: int = MAX_COMPARED_LINES
) -> list[DiffLine]:
    """Return the diff to the last approved question of this tool; empty if they are equal."""
    one, two = plain_lines(before), plain_lines(now)
    if one != two and max(len(one), len(two)) > max_lines:
        return [DiffLine("@", f"over {max_lines} lines: not compared")]
    return diff(one, two, 2)
