"""Rendering of approval questions: hidden characters escaped, diff to the last approved one."""

import difflib
import json
from typing import Literal

import msgspec

from mcpwrap.core.approval.document import Question
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import without
from mcpwrap.core.text.sanitise import visible

_MAX_COMPARED_LINES = 5000  # the time of a diff grows with the square


class DiffLine(msgspec.Struct, frozen=True):
    """One line of a diff."""

    sign: Literal["+", "-", " ", "@"]
    text: str


def pretty(question: Question) -> str:
    r"""Return the arguments, or all params if there are others, as JSON without hidden characters.

    Newlines inside a string stay `\n`, so each line on the screen is a line of JSON, and the agent
    cannot add lines. Characters that reorder or hide text are escaped, as `\u202e`.
    """
    return pretty_params(question.params)


def pretty_params(params: dict[str, Json]) -> str:
    """Return the same text for params that are not part of a question."""
    rest = without(params, "_meta", "name", "arguments")
    value = without(params, "_meta") if rest else params.get("arguments", {})
    return visible(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True))


def difference(before: Question, now: Question) -> list[DiffLine]:
    """Return the diff to the last approved question of this tool; empty if they are equal."""
    one, two = pretty(before).split("\n"), pretty(now).split("\n")
    if one != two and max(len(one), len(two)) > _MAX_COMPARED_LINES:
        return [DiffLine("@", f"over {_MAX_COMPARED_LINES} lines: not compared")]
    lines = difflib.unified_diff(one, two, n=2, lineterm="")
    found: list[DiffLine] = []
    for line in list(lines)[2:]:
        sign, text = line[0], line[1:]
        found.append(DiffLine(sign if sign in "+-@" else " ", text))  # type: ignore[arg-type]
    return found
