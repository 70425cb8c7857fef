"""Positions of servers in a YAML file. It may have anchors, aliases and tags in other places."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import yaml

from mcpwrap.config.agent_files.syntax.document import (
    MAX_DEPTH,
    YAML_BLOCK,
    YAML_FLOW,
    FileError,
    Key,
    Member,
    Opaque,
    Piece,
    ServerEntry,
    Span,
    name_in,
    where,
)

MAX_BYTES = 1024 * 1024
_COMMA = re.compile(r"(?:\s|#[^\n]*)*(,)")
# Unquoted words that are not text. Source: the core schema of YAML 1.2.
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|0[ox][0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class _YamlNode:
    """Value and its position; for a table also the keys, each with its start."""

    value: object
    start: int
    end: int
    is_flow: bool = False
    keys: "tuple[tuple[str, int, _YamlNode], ...]" = ()
    items: "tuple[_YamlNode, ...]" = ()
    digest: str = ""  # of a value with an anchor


class YamlDocument:
    """Parsed YAML file of an agent."""

    def __init__(self, file: str, text: str) -> None:
        """Parse the text.

        Raises:
            FileError: it is too long, not YAML, or not one document, or has a key twice.
        """
        if len(text) > MAX_BYTES:
            raise FileError(
                "over 1 MiB; nothing was changed", where=file, code="E-AGENT-FILE-TOO-LARGE"
            )
        self.text = text
        self._top = _Reader(file, text).top()
        self.data = self._top.value

    def entries(self, at: Sequence[str]) -> list[ServerEntry]:
        """Return the servers in the table, or list, at these keys."""
        found: _YamlNode | None = self._top
        for key in at:
            found = next((place for k, _, place in found.keys if k == key), None) if found else None
        if found is None:
            return []
        path: tuple[Key, ...] = tuple(at)
        if found.items:
            pairs = [(name_in(p.value), p) for p in found.items]
            return [self._entry(n, (*path, i), p) for i, (n, p) in enumerate(pairs)]
        return [self._entry(key, (*path, key), place) for key, _, place in found.keys]

    def _entry(self, name: str, path: tuple[Key, ...], place: _YamlNode) -> ServerEntry:
        return ServerEntry(
            name=name,
            path=path,
            value=place.value,
            members=tuple(self._members(place)),
            region=Span(place.start, place.end),
            form=YAML_FLOW if place.is_flow else YAML_BLOCK,
        )

    def _members(self, place: _YamlNode) -> Iterator[Member]:
        for key, start, inner in place.keys:
            comma = _COMMA.match(self.text, inner.end) if place.is_flow else None
            piece = Piece(start, max(inner.end, start), comma.start(1) if comma else None)
            yield Member(
                key=key,
                pieces=(piece,),
                value=Span(inner.start, inner.end),
                is_block_list=bool(inner.items) and not inner.is_flow,
            )


def _digest(place: _YamlNode) -> str:
    """Return the SHA-256 of a value with aliases as digests: expanded, it may be endless."""
    return hashlib.sha256(repr(_brief(place)).encode(errors="surrogatepass")).hexdigest()


def _brief(place: _YamlNode) -> object:
    """Return a value in which anchored values are digests, too: each value is hashed once."""
    if place.keys:
        return {key: _digest_or_brief(inner) for key, _, inner in place.keys}
    if place.items:
        return [_digest_or_brief(inner) for inner in place.items]
    return place.value


def _digest_or_brief(place: _YamlNode) -> object:
    return Opaque("an anchor", place.digest) if place.digest else _brief(place)


class _Reader:
    """Builder of values from parser events: PyYAML's own constructors follow aliases."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text
        self._digest_by_anchor: dict[str, str] = {}

    def top(self) -> _YamlNode:
        try:
            return self._top(yaml.parse(self._text, Loader=yaml.CSafeLoader))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            offset = min(mark.index, len(self._text)) if mark else 0
            raise self._wrong(
                f"not YAML: {error.problem}", offset, code="E-AGENT-FILE-SYNTAX"
            ) from error
        except (yaml.YAMLError, UnicodeError) as error:
            raise self._wrong(
                f"not YAML: {' '.join(str(error).split())}", 0, code="E-AGENT-FILE-SYNTAX"
            ) from error

    def _top(self, events: Iterator[yaml.Event]) -> _YamlNode:
        place = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if place is not None:
                    raise self._wrong(
                        "a second document", event.start_mark.index, code="E-AGENT-FILE-SYNTAX"
                    )
                place = self._place(next(events), events, 0)
        return place or _YamlNode(None, 0, 0)

    def _place(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> _YamlNode:
        start, end = event.start_mark.index, event.end_mark.index
        if depth > MAX_DEPTH:
            raise self._wrong("nested too deep", start, code="E-AGENT-FILE-NESTED")
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._digest_by_anchor:
                raise self._wrong(
                    f"not YAML: the anchor &{event.anchor} does not exist",
                    start,
                    code="E-AGENT-FILE-SYNTAX",
                )
            return _YamlNode(Opaque("an alias", self._digest_by_anchor[event.anchor]), start, end)
        if event.anchor is None:
            return self._node(event, events, depth)
        self._digest_by_anchor[event.anchor] = ""  # it may hold an alias of itself
        found = self._node(event, events, depth)
        self._digest_by_anchor[event.anchor] = digest = _digest(found)
        return replace(found, digest=digest)

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> _YamlNode:
        start, end = event.start_mark.index, event.end_mark.index
        match event:
            case yaml.ScalarEvent():
                found = self._scalar(event, start, end)
            case yaml.SequenceStartEvent():
                found = self._list(events, start, depth, is_flow=bool(event.flow_style))
            case _:
                found = self._table(events, start, depth, is_flow=bool(event.flow_style))
        if event.tag is not None:
            return _YamlNode(Opaque("a tag"), found.start, found.end)
        return found

    def _scalar(self, event: yaml.ScalarEvent, start: int, end: int) -> _YamlNode:
        if event.style in {"|", ">"}:  # its event ends where the next token begins
            end = start + len(self._text[start:end].rstrip())
        value: object = event.value
        if event.implicit[0]:
            value = _plain(event.value)
        return _YamlNode(value, start, end)

    def _list(
        self, events: Iterator[yaml.Event], start: int, depth: int, *, is_flow: bool
    ) -> _YamlNode:
        items = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(self._place(event, events, depth + 1))
        end = event.end_mark.index if is_flow or not items else items[-1].end
        return _YamlNode([item.value for item in items], start, end, is_flow, (), tuple(items))

    def _table(
        self, events: Iterator[yaml.Event], start: int, depth: int, *, is_flow: bool
    ) -> _YamlNode:
        keys: list[tuple[str, int, _YamlNode]] = []
        seen = set()
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            key_start = event.start_mark.index
            if not isinstance(event, yaml.ScalarEvent):
                raise self._wrong(
                    "a list, table or alias as a key", key_start, code="E-AGENT-FILE-SYNTAX"
                )
            if event.value in seen:
                raise self._wrong(
                    f"{event.value!a} appears twice in one table",
                    key_start,
                    code="E-AGENT-FILE-DUPLICATE-KEY",
                )
            seen.add(event.value)
            keys.append((event.value, key_start, self._place(next(events), events, depth + 1)))
        end = event.end_mark.index if is_flow or not keys else keys[-1][2].end
        value = {key: place.value for key, _, place in keys}
        return _YamlNode(value, start, end, is_flow, tuple(keys))

    def _wrong(self, problem: str, offset: int, *, code: str) -> FileError:
        place = where(self._file, self._text, offset)
        return FileError(f"{problem}; nothing was changed", where=place, code=code)


def _plain(text: str) -> object:
    """Return the value of an unquoted text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return Opaque("a number") if _NUMBER.fullmatch(text) else text
