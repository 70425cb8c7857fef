"""Changes of the definitions of a server as lines of text, for every program that shows them.

Each line has its mark at the left edge, and no line begins with a text of the server: what a server
wrote cannot be taken for a line of mcpwrap, nor move or hide another one.
"""

import json
from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec

from mcpwrap.core.pins.acceptance import MAX_VARIANTS
from mcpwrap.core.pins.definition_diff import (
    MAX_CELLS,
    PathDifference,
    TextPart,
    compare,
    introduced,
)
from mcpwrap.core.pins.definitions import Finding
from mcpwrap.core.pins.pin_question import NOTHING, HeldChange, HeldChanges
from mcpwrap.core.pins.typed_names import displayed_name
from mcpwrap.core.protocol import strict_json
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.sanitise import one_line, visible

_MAX_ALL_CELLS = 8_000_000  # of all changes together: a few seconds
_CONTEXT_WORDS = 12  # before and after a change
_Of = Literal["heading", "note", "path", "warning", "same", "left out", "added", "removed"]
_MARKS: dict[_Of, str] = {
    "heading": "",
    "note": "",
    "path": "@ ",
    "warning": "! ",
    "same": "  ",
    "left out": "… ",
    "added": "+ ",
    "removed": "- ",
}


class ChangeLine(NamedTuple):
    """One line; `text` is on one line, and harmless to a terminal."""

    of: _Of
    text: str

    @property
    def marked(self) -> str:
        """Return the line with its mark."""
        return _MARKS[self.of] + self.text


def change_lines(changes: HeldChanges) -> list[ChangeLine]:
    """Return all changes, what is new first."""
    lines = list[ChangeLine]()
    versions = dict.fromkeys(filter(None, (changes.version_before, changes.version_after)))
    if versions:
        text = f"version {' -> '.join(versions)}, as the server reports it"
        lines.append(ChangeLine("note", one_line(text)))
    max_cells = min(MAX_CELLS, _MAX_ALL_CELLS // max(1, len(changes.changes)))
    for one in changes.changes:
        lines += _of_change(one, max_cells)
    if changes.more:
        more = f"{changes.more} more are shown when these have been decided"
        lines.append(ChangeLine("note", more))
    return lines


def _of_change(one: HeldChange, max_cells: int) -> Iterator[ChangeLine]:
    name = displayed_name(one.kind, one.name)
    after = value_of(one.after)
    what = "new" if one.what == "added" else "changed"
    rejected = ", and was rejected" if one.is_rejected else ""
    yield ChangeLine("heading", f"{what}: {name}{rejected}")
    yield from map(finding_line, one.findings)
    if bytes(one.before) == bytes(NOTHING):
        yield from definition_lines(after, "added")
        return
    if one.variants >= MAX_VARIANTS:
        dropped = f"{one.variants} definitions of it are accepted; acceptance drops the oldest"
        yield ChangeLine("warning", dropped)
    before = value_of(one.before)
    yield from (ChangeLine("warning", one_line(text)) for text in introduced(before, after))
    for difference in compare(before, after, max_cells):
        yield from _of_path(difference)


def finding_line(one: Finding) -> ChangeLine:
    """Return the line of a finding."""
    return ChangeLine(
        "warning", one_line(f"{one.name} in {one.where}: {one.excerpt} ({one.reason})")
    )


def definition_lines(definition: Json, of: Literal["same", "added"] = "same") -> list[ChangeLine]:
    """Return a definition in full, as JSON: a text of the server has no line of its own."""
    text = visible(json.dumps(definition, indent=2, ensure_ascii=False, sort_keys=True))
    return [ChangeLine(of, line) for line in text.split("\n")]


def value_of(definition: msgspec.Raw) -> Json:
    """Return the value of canonical JSON."""
    return strict_json.decode(bytes(definition))


def _of_path(difference: PathDifference) -> Iterator[ChangeLine]:
    yield ChangeLine("path", one_line(difference.path))
    last = len(difference.parts) - 1
    for number, part in enumerate(difference.parts):
        match part.sign:
            case "+":
                yield ChangeLine("added", one_line(part.text))
            case "-":
                yield ChangeLine("removed", one_line(part.text))
            case " ":
                yield from _context(part, is_first=number == 0, is_last=number == last)


def _context(part: TextPart, *, is_first: bool, is_last: bool) -> Iterator[ChangeLine]:
    """Yield common words: of many only those beside a change."""
    words = part.text.split(" ")
    after = 0 if is_first else _CONTEXT_WORDS
    before = 0 if is_last else _CONTEXT_WORDS
    left_out = len(words) - after - before
    if left_out <= _CONTEXT_WORDS:
        yield ChangeLine("same", one_line(part.text))
        return
    if after:
        yield ChangeLine("same", one_line(" ".join(words[:after])))
    yield ChangeLine("left out", f"{left_out} words")
    if before:
        yield ChangeLine("same", one_line(" ".join(words[-before:])))
