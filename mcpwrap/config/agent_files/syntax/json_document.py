"""Parser of JSON with comments and trailing commas, and the positions of servers in it.

Comments and trailing commas become spaces; then it is JSON of the same length, and the parser of
the standard library reports errors, and the end of each value. A repeated key is an error.
"""

import re
from collections.abc import Iterator, Sequence
from json import JSONDecodeError, JSONDecoder
from typing import NamedTuple, NoReturn

from mcpwrap.config.agent_files.syntax.document import (
    JSON,
    MAX_DEPTH,
    FileError,
    Member,
    Opaque,
    Piece,
    ServerEntry,
    Span,
    at_keys,
    name_in,
    where,
)

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
# As much as has no comment; then one. As much as has no comma that is too many; then that.
# Bounded, since `re` notes each round. Possessive ones would not, but match too little in 3.11.2.
_NO_COMMENT = re.compile(rf'(?:[^"/]+|{_STRING}|/(?![/*])){{1,1000}}', re.DOTALL)
_COMMENT = re.compile(r"//[^\n\r]*|/\*.*?\*/", re.DOTALL)
_NO_TRAILING = re.compile(
    rf'(?:[^",\[{{]+|{_STRING}|[\[{{](?!\s*,)|,(?!\s*[\]}}])){{1,1000}}', re.DOTALL
)
_TRAILING = re.compile(r",(?=\s*[\]}])")
_NO_NUMBER = re.compile(rf"{_STRING}|(-?Infinity|NaN)", re.DOTALL)
_SPACE = re.compile(r"[ \t\n\r]*")
_NO_NEWLINE = re.compile(r"[^\n\r]")
_MAX_DIGITS = 300  # over that a double is infinite


class _JsonItem(NamedTuple):
    """Position of a value in an object or a list, and its key. `key_start` is `start` in a list."""

    key: str
    key_start: int
    start: int
    end: int
    comma: int | None


class _Texts(NamedTuple):
    """Two texts of the same file, with the same offsets."""

    spaced: str  # without comments
    bare: str  # without trailing commas besides


class _RepeatedError(ValueError):
    """Repeated key in an object."""


class _NoNumberError(ValueError):
    """NaN or Infinity, which JSON does not have."""


class JsonDocument:
    """Parsed JSON file of an agent."""

    def __init__(self, file: str, text: str) -> None:
        """Read it.

        Raises:
            FileError: it is no JSON, or no object, or has a key twice.
        """
        self.text = text
        self._texts, self.data = _decoded(file, text)
        self._seen: dict[int, list[_JsonItem]] = {}
        if not isinstance(self.data, dict):
            raise FileError("not a JSON object", where=f"{file}:1:1", fix="begin it with `{`")

    def entries(self, at: Sequence[str]) -> list[ServerEntry]:
        """Return the servers in the table, or list, at these keys."""
        found = at_keys(self.data, at)
        if not isinstance(found, (dict, list)) or not found:
            return []
        start = _skip(self._texts.bare, 0)
        for key in at:
            start = next(place.start for place in self._places(start) if place.key == key)
        is_list = isinstance(found, list)
        values = found if isinstance(found, list) else list(found.values())
        return [
            ServerEntry(
                name=name_in(value) if is_list else place.key,
                path=(*at, number if is_list else place.key),
                value=value,
                members=tuple(self._members(place.start)) if isinstance(value, dict) else (),
                region=Span(place.start, place.end),
                form=JSON,
            )
            for number, (value, place) in enumerate(zip(values, self._places(start), strict=True))
        ]

    def _places(self, start: int) -> list[_JsonItem]:
        """Return what is in the object or list there. To ask again costs nothing."""
        if start not in self._seen:
            self._seen[start] = list(_places(self._texts, start))
        return self._seen[start]

    def _members(self, start: int) -> Iterator[Member]:
        for place in self._places(start):
            piece = Piece(place.key_start, place.end, place.comma)
            yield Member(key=place.key, pieces=(piece,), value=Span(place.start, place.end))


def _decoded(file: str, text: str) -> tuple[_Texts, object]:
    """Return the text without what only some readers take, and what it says."""
    try:
        return _Texts(text, text), _DECODER.decode(text)
    except JSONDecodeError:
        spaced = _blanked(text, _NO_COMMENT, _COMMENT)
    except (ValueError, RecursionError) as error:
        _refuse(file, _Texts(text, text), error)
    texts = _Texts(spaced, _blanked(spaced, _NO_TRAILING, _TRAILING))
    try:
        return texts, _DECODER.decode(texts.bare)
    except (ValueError, RecursionError) as error:
        _refuse(file, texts, error)


def _blanked(text: str, others: re.Pattern[str], unwanted: re.Pattern[str]) -> str:
    """Return the text with spaces where something unwanted is; lines end where they did."""
    parts, at = [], 0
    while at < len(text):
        if found := others.match(text, at):
            parts.append(found[0])
        elif found := unwanted.match(text, at):
            parts.append(_NO_NEWLINE.sub(" ", found[0]))
        else:  # no JSON from here on, and whoever decodes it will say so
            parts.append(text[at:])
            break
        at = found.end()
    return "".join(parts)


def _refuse(file: str, texts: _Texts, error: Exception) -> NoReturn:
    match error:
        case JSONDecodeError():
            offset, problem = error.pos, f"not JSON: {error.msg}"
        case _RepeatedError():
            offset, key = _first_repeated(texts)
            problem = f"{key!a} stands twice in one object"
        case _NoNumberError():
            offset = next(m.start() for m in _NO_NUMBER.finditer(texts.bare) if m[1])
            problem = f"not JSON: {error}"
        case _:
            offset, problem = 0, "nested too deep"
    place = where(file, texts.bare, offset)
    raise FileError(f"{problem}; nothing was changed", where=place) from error


def _table(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise _RepeatedError
    return table


def _integer(digits: str) -> int | Opaque:
    return int(digits) if len(digits) <= _MAX_DIGITS else Opaque("a number out of range")


def _no_number(word: str) -> NoReturn:
    raise _NoNumberError(word)


_DECODER = JSONDecoder(object_pairs_hook=_table, parse_int=_integer, parse_constant=_no_number)
_ENDS = JSONDecoder(parse_int=float)  # of any length, in no time


def _skip(bare: str, at: int) -> int:
    found = _SPACE.match(bare, at)
    return found.end() if found else at


def _places(texts: _Texts, start: int) -> Iterator[_JsonItem]:
    """Yield what is in the object or list that begins at `start`, which is known to be one."""
    spaced, bare = texts
    is_object = bare[start] == "{"
    at = _skip(spaced, start + 1)
    while spaced[at] not in "]}":
        key, key_start = "", at
        if is_object:
            key, at = _ENDS.raw_decode(spaced, at)
            at = _skip(spaced, _skip(spaced, at) + 1)
        _, end = _ENDS.raw_decode(bare, at)
        following = _skip(spaced, end)
        has_comma = spaced[following] == ","
        yield _JsonItem(key, key_start, at, end, following if has_comma else None)
        at = _skip(spaced, following + 1) if has_comma else following


def _first_repeated(texts: _Texts) -> tuple[int, str]:
    """Return where a key stands twice. What follows it was not decoded, and may be no JSON."""
    nowhere = 0, "a key"
    try:
        return next(_repeated(texts, _skip(texts.bare, 0), 0), nowhere)
    except (ValueError, IndexError, RecursionError):
        return nowhere


def _repeated(texts: _Texts, start: int, depth: int) -> Iterator[tuple[int, str]]:
    """Yield where keys stand that the same object already has, but for the deepest."""
    seen = set()
    for place in _places(texts, start) if depth < MAX_DEPTH else ():
        if texts.bare[start] == "{" and place.key in seen:
            yield place.key_start, place.key
        seen.add(place.key)
        if texts.bare[place.start] in "[{":
            yield from _repeated(texts, place.start, depth + 1)
