"""Minimal text edits that set or drop keys of one entry; all other text stays as it is."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mcpwrap.config.agent_files.syntax.document import (
    TOML_TABLE,
    Key,
    Member,
    Opaque,
    Piece,
    ServerEntry,
    SyntaxStyle,
)

_BLANKS = " \t"
# Characters that end a line, or are invisible, for some readers of JSON, TOML or YAML.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_BARE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class TextEdit(NamedTuple):
    """Text edit: the text from `start` to `end` becomes `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Change of one entry. New keys are inserted beside its key `main`."""

    entry: ServerEntry
    settings: Mapping[str, object]
    dropped: frozenset[str] = frozenset()
    main: str

    def value(self) -> dict[str, object]:
        """Return the value of the entry after the change."""
        found = self.entry.value if isinstance(self.entry.value, dict) else {}
        return {k: v for k, v in found.items() if k not in self.dropped} | dict(self.settings)


def apply_edits(text: str, splices: list[TextEdit]) -> str:
    """Return the text after all of these edits, which do not overlap."""
    parts, at = [], 0
    for start, end, new in sorted(splices):
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])


def text_edits(text: str, change: Change) -> list[TextEdit]:
    """Return the text edits for a change of one entry."""
    return list(_Editor(text, change).splices())


class _Editor:
    """Editor for one change of one entry."""

    def __init__(self, text: str, change: Change) -> None:
        self._text = text
        self._change = change
        self._form = change.entry.form
        members = change.entry.members
        self._main = next(m for m in members if m.key == change.main)
        self._first = self._main.pieces[0]
        in_place = {m.key for m in members if m.key in change.settings and m.value}
        self._in_place = [m for m in members if m.key in in_place]
        self._missing = [key for key in change.settings if key not in in_place]
        gone = change.dropped | set(change.settings)
        self._gone = [m for m in members if m.key in gone and m.key not in in_place]

    def splices(self) -> Iterator[TextEdit]:
        yield from self._new_values()
        yield from self._new_keys()
        gone = [piece for member in self._gone for piece in member.pieces]
        if self._missing and self._main in self._gone:
            gone.remove(self._first)  # new keys replace it
        for piece in gone:
            yield self._without(piece)
        if self._form.has_commas:
            yield from self._without_last_comma(gone)

    def _new_values(self) -> Iterator[TextEdit]:
        found = self._change.entry.value
        for member in self._in_place:
            new = self._change.settings[member.key]
            if member.value and isinstance(found, dict) and found[member.key] != new:
                start, end = member.value.start, member.value.end
                yield TextEdit(start, end, self._as_value(member, new, is_empty=start == end))

    def _new_keys(self) -> Iterator[TextEdit]:
        if not self._missing:
            return
        first, settings = self._first, self._change.settings
        keys = [
            self._main.prefix + written(self._form, key, settings[key]) for key in self._missing
        ]
        between = self._between()
        if first.is_table:
            table, between = self._change.entry.path, self._eol() * 2
            keys = [self._table((*table, key), settings[key]) for key in self._missing]
        if self._main in self._gone:
            yield TextEdit(first.start, first.end, between.join(keys))
        else:
            yield TextEdit(first.end, first.end, between + between.join(keys))

    def _table(self, path: tuple[Key, ...], value: object) -> str:
        """Return a table of TOML with its header: its keys cannot stand below another header."""
        names = [str(key) for key in path]
        header = ".".join(key if _BARE_KEY.fullmatch(key) else _quoted(key) for key in names)
        items = value.items() if isinstance(value, dict) else ()
        return self._eol().join([f"[{header}]", *(written(TOML_TABLE, k, v) for k, v in items)])

    def _as_value(self, member: Member, new: object, *, is_empty: bool) -> str:
        if member.is_block_list and member.value and isinstance(new, list) and new:
            indent = " " * (member.value.start - self._line_start(member.value.start))
            return f"{self._eol()}{indent}".join(f"- {as_text(self._form, one)}" for one in new)
        return (" " if is_empty else "") + as_text(self._form, new)

    def _between(self) -> str:
        """Return the separator of two keys in this entry: a comma, or a new line, or both."""
        start = self._line_start(self._first.start)
        before = self._text[start : self._first.start]
        comma = "," if self._form.has_commas else ""
        if not before.strip(_BLANKS):
            return f"{comma}{self._eol()}{before}"
        return ", " if comma else self._eol() + " " * len(before)

    def _without(self, piece: Piece) -> TextEdit:
        """Return the edit that removes a key: with its line, unless that has other text."""
        start = self._line_start(piece.start)
        end = piece.end if piece.comma is None else piece.comma + 1
        has_line = not self._text[start : piece.start].strip(_BLANKS)
        line_end = self._line_end(end)
        is_last = not self._text[end:line_end].strip(_BLANKS + "\r")
        if has_line and is_last:
            return self._without_line(piece, start, line_end)
        if has_line:
            return TextEdit(piece.start, end, "")  # a comment stays
        if self._form.has_commas:
            blanks = len(self._text[: piece.start]) - len(self._text[: piece.start].rstrip(_BLANKS))
            return TextEdit(piece.start - blanks, end, "")
        following = [p.start for m in self._change.entry.members for p in m.pieces]
        return TextEdit(piece.start, min(at for at in following if at > piece.start), "")

    def _without_line(self, piece: Piece, start: int, line_end: int) -> TextEdit:
        if self._text[line_end - 1 : line_end] == "\r":
            line_end -= 1
        before = self._text[:start]
        if piece.is_table:
            kept = before.rstrip("\r\n")
        else:
            kept = before.removesuffix("\n").removesuffix("\r")
        if kept:
            return TextEdit(len(kept), line_end, "")
        return TextEdit(start, self._next(line_end), "")  # there is no line before it

    def _without_last_comma(self, gone: list[Piece]) -> Iterator[TextEdit]:
        """Yield the removal of the comma that would newly be the last thing in the table."""
        pieces = sorted(
            (p for m in self._change.entry.members for p in m.pieces), key=lambda p: p.start
        )
        if not gone or pieces[-1].comma is not None:
            return
        kept = [piece for piece in pieces if piece not in gone]
        if kept[-1].comma is not None:
            yield TextEdit(kept[-1].comma, kept[-1].comma + 1, "")

    def _next(self, line_end: int) -> int:
        """Return the offset of the next line."""
        found = re.compile(r"\r?\n").match(self._text, line_end)
        return found.end() if found else line_end

    def _line_start(self, at: int) -> int:
        return self._text.rfind("\n", 0, at) + 1

    def _line_end(self, at: int) -> int:
        found = self._text.find("\n", at)
        return len(self._text) if found < 0 else found

    def _eol(self) -> str:
        first = self._text.find("\n")
        return "\r\n" if first > 0 and self._text[first - 1] == "\r" else "\n"


def written(form: SyntaxStyle, key: str, value: object) -> str:
    """Return the text of a key and its value."""
    is_bare = form.language != "json" and _BARE_KEY.fullmatch(key)
    return f"{key if is_bare else _quoted(key)}{form.colon}{as_text(form, value)}"


def as_text(form: SyntaxStyle, value: object) -> str:
    """Return a value as text on one line. JSON is also YAML, and except for tables also TOML.

    Raises:
        ValueError: the value cannot be written in this language.
    """
    match value:
        case Opaque():
            raise ValueError(value.what)
        case dict() if form.language == "toml":
            pairs = ", ".join(written(form, key, inner) for key, inner in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        case dict():
            inner = ", ".join(f"{_quoted(k)}: {as_text(form, v)}" for k, v in value.items())
            return f"{{{inner}}}"
        case list():
            return f"[{', '.join(as_text(form, inner) for inner in value)}]"
        case None if form.language == "toml":
            raise ValueError("nothing")
        case None | str() | int() | float():
            return _quoted(value)
        case _:
            raise ValueError("a date")


def _quoted(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda char: f"\\u{ord(char[0]):04x}", text)
