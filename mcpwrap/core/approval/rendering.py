"""Rendering of approval questions: hidden characters escaped, and a diff to the last approved."""

import difflib
import json
from typing import Literal

import msgspec

from mcpwrap.core.approval.document import Question
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import without
from mcpwrap.core.text.sanitise import visible

_MAX_COMPARED_LINES = 5000  # the time it takes grows with the square


class DiffLine(msgspec.Struct, frozen=True):
    """One line of a diff."""

    sign: Literal["+", "-", " ", "@"]
    text: str


def pretty(question: Question) -> str:
    r"""Return the arguments, or all params where there are more, with all their marks visible.

    Newlines inside a text stay `\n`: a line that one sees is a line of JSON, and none that the
    agent wrote. Characters that reorder or hide text are written out, as `\u202e`.
    """
    return pretty_params(question.params)


def pretty_params(params: dict[str, Json]) -> str:
    """Return the same of params that are not in a question yet."""
    rest = without(params, "_meta", "name", "arguments")
    value = without(params, "_meta") if rest else params.get("arguments", {})
    return visible(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True))


def difference(before: Question, now: Question) -> list[DiffLine]:
    """Return what is other than in the last approved one of this tool; empty if nothing is."""
    one, two = pretty(before).split("\n"), pretty(now).split("\n")
    if one != two and max(len(one), len(two)) > _MAX_COMPARED_LINES:
        return [DiffLine("@", f"over {_MAX_COMPARED_LINES} lines: they are not compared")]
    lines = difflib.unified_diff(one, two, n=2, lineterm="")
    found: list[DiffLine] = []
    for line in list(lines)[2:]:
        sign, text = line[0], line[1:]
        found.append(DiffLine(sign if sign in "+-@" else " ", text))  # type: ignore[arg-type]
    return found
