"""Positions of servers in a TOML file. Its values are parsed by tomli.

The code below only finds positions in a text that is known to be TOML, and reports no errors.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import tomli

from mcpwrap.config.agent_files.syntax.document import (
    TOML_INLINE,
    TOML_TABLE,
    FileError,
    Member,
    Opaque,
    Piece,
    ServerEntry,
    Span,
    at_keys,
    where,
)

MAX_BYTES = 1024 * 1024
_STRINGS = (
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})',
    r"'''.*?'''(?:'{0,2})",
    r'"(?:[^"\\\n]|\\.)*"',
    r"'[^'\n]*'",
)
_WORD = re.compile(
    "|".join([*_STRINGS, r"#[^\n]*", r"[\[\]{},\n]", r"[^\"'#\[\]{},\n]+"]), re.DOTALL
)
_PART = re.compile("|".join([r"[A-Za-z0-9_-]+", *_STRINGS[2:]]))
_KEY = re.compile(rf"(?:{_PART.pattern})(?:[ \t]*\.[ \t]*(?:{_PART.pattern}))*")
_BETWEEN = re.compile(r"(?:[\s,]|#[^\n]*)*")
_TO_COMMA = re.compile(r"(?:\s|#[^\n]*)*(?=,)")  # in TOML 1.1, a comment may precede it
_SPACE = re.compile(r"[ \t]*")
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class _Statement:
    """Key with its value, or the header of a table."""

    path: tuple[str, ...]
    key_starts: tuple[int, ...]  # offsets of the keys written here, which are the last of the path
    start: int
    end: int
    value: Span | None  # None: a header
    comma: int | None = None

    def key_start(self, level: int) -> int:
        """Return the offset of the key at this index of the path, which must be written here."""
        return self.key_starts[level - len(self.path) + len(self.key_starts)]


class TomlDocument:
    """Parsed TOML file of an agent."""

    def __init__(self, file: str, text: str) -> None:
        """Parse the text.

        Raises:
            FileError: it is too long, or not TOML.
        """
        if len(text) > MAX_BYTES:
            raise FileError(
                "over 1 MiB; nothing was changed", where=file, code="E-AGENT-FILE-TOO-LARGE"
            )
        self.text = text
        self.data: dict[str, object] = _decoded(file, text)
        self._statements = list(_statements(text))
        self._number_by_start = {s.start: n for n, s in enumerate(self._statements)}

    def entries(self, at: Sequence[str]) -> list[ServerEntry]:
        """Return the servers in the table at these keys."""
        found, path = at_keys(self.data, at), tuple(at)
        if not isinstance(found, dict):
            return []
        statements: dict[str, list[_Statement]] = {name: [] for name in found}
        for statement in self._under(path, self._statements):
            statements[statement.path[len(path)]].append(statement)
        return [self._entry((*path, name), found[name], statements[name]) for name in found]

    def _entry(self, path: tuple[str, ...], value: object, found: list[_Statement]) -> ServerEntry:
        region, form = self._region(found), TOML_TABLE
        members = [statement for statement in found if statement.path != path]
        inline = next((s for s in found if s.path == path and s.value), None)
        if inline:
            region, form = inline.value, TOML_INLINE
            members = list(_within(self.text, inline))
        elif found[0].start not in self._number_by_start:
            form = TOML_INLINE
        return ServerEntry(
            name=path[-1],
            path=path,
            value=value,
            members=tuple(_members(self.text, len(path), members)),
            region=region,
            form=form,
        )

    def _under(
        self, path: tuple[str, ...], statements: Iterable[_Statement]
    ) -> Iterator[_Statement]:
        """Yield the statements in a table, also if it is an inline table, or in one."""
        for statement in statements:
            if len(statement.path) > len(path) and statement.path[: len(path)] == path:
                yield statement
            elif statement.value and path[: len(statement.path)] == statement.path:
                yield from self._under(path, _within(self.text, statement))

    def _region(self, found: list[_Statement]) -> Span | None:
        """Return the span of an entry, if no other text is in between."""
        first = self._number_by_start.get(found[0].start, -1)
        if first < 0 or self._statements[first : first + len(found)] != found:
            return None
        return Span(found[0].start, found[-1].end)


def _decoded(file: str, text: str) -> dict[str, object]:
    try:
        return tomli.loads(text, parse_float=Opaque)
    except tomli.TOMLDecodeError as error:
        found = _AT.search(str(error))
        problem = str(error).removesuffix(found[0] if found else "")
        line, column = found.groups() if found and found[1] else (None, None)
        place = f"{file}:{line}:{column}" if line else where(file, text, len(text))
    except (ValueError, RecursionError):  # a number of thousands of digits
        problem, place = "nested too deep, or a number too long", f"{file}:1:1"
    raise FileError(
        f"not TOML: {problem}; nothing was changed", where=place, code="E-AGENT-FILE-SYNTAX"
    )


def _statements(text: str) -> Iterator[_Statement]:
    table: tuple[str, ...] = ()
    at = 0
    while (at := _end(_BETWEEN, text, at)) < len(text):
        if text[at] != "[":
            statement = _pair(text, at, table)
            yield statement
            at = statement.end
            continue
        brackets = 2 if text.startswith("[[", at) else 1
        keys, key_starts, end = _keys(text, _end(_SPACE, text, at + brackets))
        table, end = keys, text.index("]", end) + brackets
        yield _Statement(keys, key_starts, at, end, None)
        at = end


def _pair(text: str, start: int, table: tuple[str, ...]) -> _Statement:
    keys, key_starts, at = _keys(text, start)
    value_start = _end(_SPACE, text, text.index("=", at) + 1)
    end = _value_end(text, value_start)
    return _Statement((*table, *keys), key_starts, start, end, Span(value_start, end))


def _keys(text: str, at: int) -> tuple[tuple[str, ...], tuple[int, ...], int]:
    end = _end(_KEY, text, at)
    parts = list(_PART.finditer(text, at, end))
    return tuple(_unquoted(part[0]) for part in parts), tuple(p.start() for p in parts), end


def _unquoted(key: str) -> str:
    return str(tomli.loads(f"key = {key}")["key"]) if key[0] in "\"'" else key


def _value_end(text: str, at: int) -> int:
    """Return the end of the value that begins at `at`."""
    depth, end = 0, at
    while found := _WORD.match(text, at):
        word = found[0]
        if depth == 0 and (word[0] in "#\n,]}"):
            break
        depth += (word in "[{") - (word in "]}")
        at = found.end()
        end = found.start() + len(word.rstrip(" \t\r"))
        if depth == 0 and word in "]}":
            break
    return end


def _within(text: str, outer: _Statement) -> Iterator[_Statement]:
    """Yield the statements in an inline table; empty if the value is not an inline table."""
    span = outer.value
    if span is None or text[span.start] != "{":
        return
    at = _end(_BETWEEN, text, span.start + 1)
    while text[at] != "}":
        pair = _pair(text, at, outer.path)
        following = _end(_BETWEEN, text, pair.end)
        found = _TO_COMMA.match(text, pair.end)
        comma = found.end() if found else None
        yield _Statement(pair.path, pair.key_starts, pair.start, pair.end, pair.value, comma)
        at = following


def _members(text: str, level: int, statements: list[_Statement]) -> Iterator[Member]:
    """Yield the members of an entry by key, in the order in which the keys appear first."""
    runs: dict[str, list[list[_Statement]]] = {}
    for key, run in groupby(statements, key=lambda statement: statement.path[level]):
        runs.setdefault(key, []).append(list(run))
    for key, found in runs.items():
        pieces = tuple(piece for run in found for piece in _pieces(run))
        only = found[0][0]
        is_one = len(pieces) == 1 and only.value is not None and len(only.path) == level + 1
        is_pair = only.value is not None and len(only.key_starts) >= len(only.path) - level
        yield Member(
            key=key,
            pieces=pieces,
            value=only.value if is_one else None,
            prefix=text[only.start : only.key_start(level)] if is_pair else "",
        )


def _pieces(run: list[_Statement]) -> Iterator[Piece]:
    """Yield the ranges to remove together: a table with all that is in it, or one key."""
    if run[0].value is None:
        yield Piece(run[0].start, run[-1].end, is_table=True)
        return
    for number, statement in enumerate(run):
        if statement.value is None:
            yield from _pieces(run[number:])
            return
        yield Piece(statement.start, statement.end, statement.comma)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
