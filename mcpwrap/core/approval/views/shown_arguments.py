"""Arguments as an approver reads them: deciding ones first, texts by lines, edits as diffs.

Nothing is left out or cut, and different arguments have different lines.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from mcpwrap.core.approval.document import Question
from mcpwrap.core.protocol.json_keys import folded
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import without
from mcpwrap.core.text.sanitise import one_line, visible

MAX_EDIT_LINES = 1000  # of all edits of a call: the time of a diff grows with the square
# Names of an old and a new text, by which edit tools are called: MCP's filesystem server, Claude
# Code, Anthropic's text editor tool, and others.
_EDIT_PAIRS = (
    ("oldText", "newText"), ("old_text", "new_text"), ("old_string", "new_string"),
    ("oldString", "newString"), ("old_str", "new_str"), ("oldContent", "newContent"),
    ("old_content", "new_content"), ("search", "replace"),
)  # fmt: skip
CHANGED = "The server has changed this tool since it first listed it."
DECIDING = "arguments that decide"  # title of those that the rules are about
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_BAR = "│ "  # before each line of a text


class DiffLine(msgspec.Struct, frozen=True):
    """One line of a diff."""

    sign: Literal["+", "-", " ", "@"]
    text: str


class ShownArgument(msgspec.Struct, frozen=True, kw_only=True):
    """One argument, or one text in it, with the lines that a person reads."""

    path: str
    is_deciding: bool
    note: str = ""  # of a text or an edit; a value has none
    lines: tuple[DiffLine, ...]
    is_edit: bool = False

    @property
    def plain(self) -> list[str]:
        """Return the lines with the path, for a comparison or a terminal."""
        if not self.note:
            first, *rest = (line.text for line in self.lines)
            return [f"{self.path}: {first}", *(f"  {line}" for line in rest)]
        signs = (f"{line.sign} " if self.is_edit else "" for line in self.lines)
        marked = (
            f"  {_BAR}{sign}{line.text}" for sign, line in zip(signs, self.lines, strict=True)
        )
        return [f"{self.path}: {self.note}", *marked]


def shown_arguments(question: Question, deciding: Sequence[str] = ()) -> list[ShownArgument]:
    """Return the arguments, or all params if there are others; `deciding` are names of arguments.

    Names are compared as their readers may, some of which ignore case. Texts keep their lines,
    other values are JSON, and a pair of an old and a new text is one diff.
    """
    rank_by_name = {folded(name): rank for rank, name in enumerate(deciding)}
    ranked: list[tuple[int, ShownArgument]] = []
    for names, part in _all_parts(question, _EditBudget()):
        rank = min(rank_by_name.get(folded(name), len(deciding)) for name in names)
        is_deciding = rank < len(deciding)
        ranked.append((rank, msgspec.structs.replace(part, is_deciding=is_deciding)))
    return [part for _, part in sorted(ranked, key=lambda one: one[0])]


def plain_lines(question: Question) -> list[str]:
    """Return the lines of all arguments in one order, without diffs, for a comparison."""
    parts = _all_parts(question, _EditBudget(0))
    return [line for _, part in parts for line in part.plain]


def diff(one: list[str], two: list[str], context: int) -> list[DiffLine]:
    """Return the unified diff of lines; empty if they are equal."""
    found: list[DiffLine] = []
    for line in list(difflib.unified_diff(one, two, n=context, lineterm=""))[2:]:
        sign, text = line[0], line[1:]
        found.append(DiffLine(sign if sign in "+-@" else " ", text))  # type: ignore[arg-type]
    return found


def text_lines(text: str) -> tuple[str, list[str]]:
    r"""Return a note on a text, and its lines without hidden characters.

    Only a text that has characters to escape has its backslashes doubled; the note says so.
    """
    lines = text.split("\n")
    count = len(lines) - (not lines[-1])
    note = f"text, {count} line{'s' * (count != 1)}, {len(text)} characters"
    if _is_plain(text):
        return note, lines
    return f"{note}; escaped", _escaped(lines)


def lines_alike(one: str, two: str) -> tuple[str, list[str], list[str]]:
    """Return a note on two texts, and the lines of each: both are escaped, or neither is.

    Escaped alone, one could have the lines of the other.
    """
    if _is_plain(one) and _is_plain(two):
        return "", one.split("\n"), two.split("\n")
    return "; escaped", _escaped(one.split("\n")), _escaped(two.split("\n"))


class _EditBudget:
    """Lines of edits that may still be compared."""

    def __init__(self, lines: int = MAX_EDIT_LINES) -> None:
        self._left = lines

    def take(self, lines: int) -> bool:
        """Return whether so many lines may be compared, and use them up."""
        if lines > self._left:
            return False
        self._left -= lines
        return True


def _all_parts(
    question: Question, edits: _EditBudget
) -> Iterator[tuple[tuple[str, ...], ShownArgument]]:
    """Yield the parts of all params, with the names of the arguments that each is of."""
    has_more = bool(without(question.params, "_meta", "name", "arguments"))
    arguments = question.params.get("arguments")
    shown = ("_meta",) if has_more else ("_meta", "name")
    if isinstance(arguments, dict) and (arguments or not has_more):
        yield from _members("arguments" if has_more else "", arguments, edits)
        shown = (*shown, "arguments")
    for _, part in _members("", without(question.params, *shown), edits):
        yield ("",), part


def _members(
    path: str, value: Mapping[str, Json], edits: _EditBudget
) -> Iterator[tuple[tuple[str, ...], ShownArgument]]:
    """Yield the parts of an object with the names of the members that each is of."""
    compared: set[str] = set()
    for old, new in _EDIT_PAIRS:
        before, after = value.get(old), value.get(new)
        if not isinstance(before, str) or not isinstance(after, str) or before == after:
            continue
        edit = _edit(f"{path}: " if path else "", (old, new), (before, after), edits)
        if edit is not None:
            compared |= {old, new}
            yield (old, new), edit
    for name in sorted(value.keys() - compared):
        for part in _parts(_step(path, name), value[name], edits):
            yield (name,), part


def _parts(path: str, value: Json, edits: _EditBudget) -> Iterator[ShownArgument]:
    if isinstance(value, str) and "\n" in value:
        note, lines = text_lines(value)
        yield _shown(path, note, [DiffLine(" ", line) for line in lines])
    elif isinstance(value, dict) and _has_text(value):
        for _, part in _members(path, value, edits):
            yield part
    elif isinstance(value, list) and _has_text(value):
        for number, each in enumerate(value):
            yield from _parts(f"{path}[{number}]", each, edits)
    else:
        text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
        yield _shown(path, "", [DiffLine(" ", line) for line in visible(text).split("\n")])


def _edit(
    prefix: str, names: tuple[str, str], texts: tuple[str, str], edits: _EditBudget
) -> ShownArgument | None:
    """Return all lines of two texts as one diff; None if they are too long for that."""
    escaped, one, two = lines_alike(*texts)
    if not edits.take(len(one) + len(two)):
        return None
    note = f"the second replaces the first{escaped}"
    lines = diff(one, two, max(len(one), len(two)))
    shown = [line for line in lines if line.sign != "@"]
    return _shown(f"{prefix}{names[0]}, {names[1]}", note, shown, is_edit=True)


def _is_plain(text: str) -> bool:
    return "\t" not in text and visible(text) == text


def _escaped(lines: list[str]) -> list[str]:
    return [one_line(line.replace("\\", "\\\\")) for line in lines]


def _shown(path: str, note: str, lines: list[DiffLine], *, is_edit: bool = False) -> ShownArgument:
    return ShownArgument(
        path=path, is_deciding=False, note=note, lines=tuple(lines), is_edit=is_edit
    )


def _has_text(value: Json) -> bool:
    """Return whether a text with several lines, or an edit, is in a value."""
    match value:
        case str():
            return "\n" in value
        case list():
            return any(_has_text(each) for each in value)
        case dict():
            return _has_edit(value) or any(_has_text(each) for each in value.values())
        case _:
            return False


def _has_edit(value: Mapping[str, Json]) -> bool:
    return any(
        isinstance(value.get(old), str) and isinstance(value.get(new), str)
        for old, new in _EDIT_PAIRS
    )


def _step(path: str, name: str) -> str:
    if _PLAIN_NAME.fullmatch(name):
        return f"{path}.{name}" if path else name
    return f"{path}[{visible(json.dumps(name, ensure_ascii=False))}]"
