"""Parser of JSON with comments and trailing commas, and the positions of servers in it.

Comments and trailing commas become spaces. The result is JSON of the same length, in which the
parser of the standard library finds errors, and the end of each value. A repeated key is an error.
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
# Text without a comment; then a comment. Text without a trailing comma; then a trailing comma.
# Repetitions are bounded, since `re` stores each round. Possessive ones would not be stored, but
# match too little in Python 3.11.2.
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
    """Key and position of a value in an object or a list. In a list, `key_start` is `start`."""

    key: str
    key_start: int
    start: int
    end: int
    comma: int | None


class _Texts(NamedTuple):
    """Two texts of the same file, with the same offsets."""

    spaced: str  # without comments
    bare: str  # without comments and trailing commas


class _RepeatedError(ValueError):
    """Repeated key in an object."""


class _NoNumberError(ValueError):
    """NaN or Infinity, which JSON does not have."""


class JsonDocument:
    """Parsed JSON file of an agent."""

    def __init__(self, file: str, text: str) -> None:
        """Parse the text.

        Raises:
            FileError: it is not JSON, or not an object, or has a key twice.
        """
        self.text = text
        self._texts, self.data = _decoded(file, text)
        self._seen: dict[int, list[_JsonItem]] = {}
        if not isinstance(self.data, dict):
            raise FileError(
                "not a JSON object",
                where=f"{file}:1:1",
                fix="begin it with `{`",
                code="E-AGENT-FILE-SYNTAX",
            )

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
        """Return the values in the object or list at `start`. The result is cached."""
        if start not in self._seen:
            self._seen[start] = list(_places(self._texts, start))
        return self._seen[start]

    def _members(self, start: int) -> Iterator[Member]:
        for place in self._places(start):
            piece = Piece(place.key_start, place.end, place.comma)
            yield Member(key=place.key, pieces=(piece,), value=Span(place.start, place.end))


def value_of(file: str, text: str) -> object:
    """Return the value of a whole file, of any JSON type.

    Raises:
        FileError: it is not JSON, or an object in it has a key twice.
    """
    return _decoded(file, text)[1]


def _decoded(file: str, text: str) -> tuple[_Texts, object]:
    """Return the text without comments and trailing commas, and its value."""
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
    """Return the text with spaces in place of unwanted text; line ends stay."""
    parts, at = [], 0
    while at < len(text):
        if found := others.match(text, at):
            parts.append(found[0])
        elif found := unwanted.match(text, at):
            parts.append(_NO_NEWLINE.sub(" ", found[0]))
        else:  # not JSON from here on; the decoder reports it
            parts.append(text[at:])
            break
        at = found.end()
    return "".join(parts)


def _refuse(file: str, texts: _Texts, error: Exception) -> NoReturn:
    match error:
        case JSONDecodeError():
            raise FileError(
                f"not JSON: {error.msg}; nothing was changed",
                where=where(file, texts.bare, error.pos),
                code="E-AGENT-FILE-SYNTAX",
            ) from error
        case _RepeatedError():
            offset, key = _first_repeated(texts)
            raise FileError(
                f"{key!a} appears twice in one object; nothing was changed",
                where=where(file, texts.bare, offset),
                code="E-AGENT-FILE-DUPLICATE-KEY",
            ) from error
        case _NoNumberError():
            offset = next(m.start() for m in _NO_NUMBER.finditer(texts.bare) if m[1])
            raise FileError(
                f"not JSON: {error}; nothing was changed",
                where=where(file, texts.bare, offset),
                code="E-AGENT-FILE-SYNTAX",
            ) from error
        case _:
            raise FileError(
                "nested too deep; nothing was changed",
                where=where(file, texts.bare, 0),
                code="E-AGENT-FILE-NESTED",
            ) from error


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
_ENDS = JSONDecoder(parse_int=float)  # fast for a number of any length


def _skip(bare: str, at: int) -> int:
    found = _SPACE.match(bare, at)
    return found.end() if found else at


def _places(texts: _Texts, start: int) -> Iterator[_JsonItem]:
    """Yield the values in the object or list that is known to begin at `start`."""
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
    """Return offset and name of a repeated key. The text after it is not decoded: it may be bad."""
    nowhere = 0, "a key"
    try:
        return next(_repeated(texts, _skip(texts.bare, 0), 0), nowhere)
    except (ValueError, IndexError, RecursionError):
        return nowhere


def _repeated(texts: _Texts, start: int, depth: int) -> Iterator[tuple[int, str]]:
    """Yield the positions of keys that their object already has, down to MAX_DEPTH."""
    seen = set()
    for place in _places(texts, start) if depth < MAX_DEPTH else ():
        if texts.bare[start] == "{" and place.key in seen:
            yield place.key_start, place.key
        seen.add(place.key)
        if texts.bare[place.start] in "[{":
            yield from _repeated(texts, place.start, depth + 1)
