"""Parser of YAML to a tree with positions; anchors, tags and second documents are refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import yaml

from mcpwrap.config.policy.errors import Flaw, SourcePosition

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Scalar:
    """Single value as in the file, without its quotes."""

    mark: SourcePosition
    text: str
    is_quoted: bool  # it is text, even if it looks like a number


@dataclass(frozen=True, slots=True)
class Items:
    """List of nodes."""

    mark: SourcePosition
    items: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Table:
    """Keys with values, in the order of the file. Each key is there once."""

    mark: SourcePosition
    entries: "tuple[tuple[Scalar, Node], ...]"


Node = Scalar | Items | Table


class _FlawedError(Exception):
    """End of the parsing of a file that is not in our subset of YAML."""

    def __init__(self, flaw: Flaw) -> None:
        super().__init__(str(flaw))
        self.flaw = flaw


def read_tree(file: str, content: bytes, flaws: list[Flaw]) -> Node | None:
    """Return the tree of a file; None, and flaws, if it cannot be parsed."""
    top = SourcePosition(file, 1, 1)
    if len(content) > MAX_BYTES:
        flaws.append(
            Flaw(top, "over 1 MiB", "split it into policy.d/*.yaml", code="E-POLICY-TOO-LARGE")
        )
        return None
    try:
        return _Builder(file, flaws).built(content.decode())
    except UnicodeDecodeError as error:
        mark = SourcePosition(file, content.count(b"\n", 0, error.start) + 1, 1)
        flaws.append(Flaw(mark, "not UTF-8", "save it as UTF-8", code="E-POLICY-NOT-UTF8"))
    except yaml.MarkedYAMLError as error:
        mark = _mark(file, error.problem_mark) if error.problem_mark else top
        flaws.append(Flaw(mark, f"not YAML: {error.problem}", _fix(error), code="E-POLICY-YAML"))
    except yaml.YAMLError as error:
        text = _one_line(error)
        flaws.append(Flaw(top, f"not YAML: {text}", "remove the character", code="E-POLICY-YAML"))
    except _FlawedError as error:
        flaws.append(error.flaw)
    return None


class _Builder:
    """Builder of the tree from parser events: PyYAML's own follows aliases and guesses types."""

    def __init__(self, file: str, flaws: list[Flaw]) -> None:
        self._file = file
        self._flaws = flaws

    def built(self, text: str) -> Node | None:
        events = yaml.parse(text, Loader=yaml.CSafeLoader)
        node = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if node is not None:
                    self._end(
                        event,
                        "a second document",
                        "move it into a file of its own",
                        code="E-POLICY-YAML-FEATURE",
                    )
                node = self._node(next(events), events, 0)
        if node is None:
            mark = SourcePosition(self._file, 1, 1)
            self._flaws.append(
                Flaw(mark, "the file is empty", "write `version: 1`", code="E-POLICY-VERSION")
            )
        return node

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Node:
        self._expect_plain(event)
        if depth > MAX_DEPTH:
            self._end(
                event,
                f"nested over {MAX_DEPTH} levels deep",
                "remove levels: no rule has as many",
                code="E-POLICY-YAML-FEATURE",
            )
        mark = _mark(self._file, event.start_mark)
        match event:
            case yaml.ScalarEvent():
                return Scalar(mark, event.value, is_quoted=not event.implicit[0])
            case yaml.SequenceStartEvent():
                return Items(mark, tuple(self._items(events, depth)))
            case _:
                return Table(mark, tuple(self._entries(events, depth)))

    def _items(self, events: Iterator[yaml.Event], depth: int) -> Iterator[Node]:
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            yield self._node(event, events, depth + 1)

    def _entries(self, events: Iterator[yaml.Event], depth: int) -> Iterator[tuple[Scalar, Node]]:
        mark_by_key: dict[str, SourcePosition] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            key = self._node(event, events, depth + 1)
            if not isinstance(key, Scalar):
                self._end(
                    event,
                    "a list or table as a key",
                    "write a word, then `:`",
                    code="E-POLICY-YAML-FEATURE",
                )
            value = self._node(next(events), events, depth + 1)
            if first := mark_by_key.get(key.text):
                self._flaws.append(
                    Flaw(
                        key.mark,
                        f"{key.text!a} appears twice, first in line {first.line}",
                        "keep one of the two",
                        code="E-POLICY-DUPLICATE",
                    )
                )
                continue
            mark_by_key[key.text] = key.mark
            yield key, value

    def _expect_plain(self, event: yaml.Event) -> None:
        """Refuse anchors, aliases and tags: they make a short file long, or text another type."""
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            self._end(
                event,
                "anchors (`&`) and aliases (`*`) are not supported",
                "write the value out; put text that begins with `&` or `*` in quotes",
                code="E-POLICY-YAML-FEATURE",
            )
        if event.tag is not None:
            self._end(
                event,
                f"the tag {event.tag!a} is not supported",
                'remove it; write text that begins with `!` in quotes: `"!…"`',
                code="E-POLICY-YAML-FEATURE",
            )

    def _end(self, event: yaml.Event, problem: str, fix: str, *, code: str) -> NoReturn:
        raise _FlawedError(Flaw(_mark(self._file, event.start_mark), problem, fix, code=code))


def _mark(file: str, mark: yaml.Mark) -> SourcePosition:
    return SourcePosition(file, mark.line + 1, mark.column + 1)


def _fix(error: yaml.MarkedYAMLError) -> str:
    if "alias" in str(error.context):
        return 'put a text that begins with `*` in quotes: `"*"`'
    return "correct the syntax in this line or the one before"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
