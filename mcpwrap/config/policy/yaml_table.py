"""Reader of one table of a policy: keys are read by type, and errors are collected."""

import difflib
from collections.abc import Callable, Sequence
from typing import TypeVar

from mcpwrap.config.policy.errors import Flaw, SourcePosition
from mcpwrap.config.policy.yaml_scalars import json_of, kind_of, text_of
from mcpwrap.config.policy.yaml_tree import Items, Node, Scalar, Table
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core.protocol.json_value import Json

T = TypeVar("T")
MAX_ITEMS = 1000


class YamlTableReader:
    """Table of a policy. No method raises: a wrong value is None, and a flaw in the list."""

    def __init__(self, node: Node, what: str, flaws: list[Flaw]) -> None:
        self.mark = node.mark
        self.is_table = isinstance(node, Table)
        self._what = what
        self._flaws = flaws
        self._nodes: dict[str, Node] = {}
        self._keys: dict[str, SourcePosition] = {}
        if isinstance(node, Table):
            self._nodes = {key.text: value for key, value in node.entries}
            self._keys = {key.text: key.mark for key, _ in node.entries}
        else:
            self.note_at(
                node.mark, f"{_kind(node)} where {what} belongs", "write `key: value` lines"
            )

    def has(self, key: str) -> bool:
        """Say whether the key stands there."""
        return key in self._keys

    def mark_of(self, key: str) -> SourcePosition:
        """Return where a key stands, or where the table begins."""
        return self._keys.get(key, self.mark)

    def note(self, key: str, problem: str, fix: str) -> None:
        """Add a flaw at a key, or where the table begins."""
        self.note_at(self.mark_of(key), problem, fix)

    def note_at(self, mark: SourcePosition, problem: str, fix: str) -> None:
        """Add a flaw."""
        self._flaws.append(Flaw(mark, problem, fix))

    def node(self, key: str) -> Node | None:
        """Return what stands at a key."""
        return self._nodes.pop(key, None)

    def text(self, key: str, understand: Callable[[str], T]) -> T | None:
        """Return the text at a key, understood."""
        node = self.node(key)
        return None if node is None else self.understood(node, lambda n: understand(text_of(n)))

    def json(self, key: str) -> tuple[Json] | None:
        """Return the value at a key, in a tuple since it may be null."""
        node = self.node(key)
        return None if node is None else self.understood(node, lambda n: (json_of(n),))

    def texts(self, key: str, understand: Callable[[str], T]) -> tuple[T, ...]:
        """Return the text or the list of texts at a key, each understood."""
        node = self.node(key)
        nodes = (
            [] if node is None else [node] if isinstance(node, Scalar) else self.items(node, key)
        )
        found = [self.understood(n, lambda n: understand(text_of(n))) for n in nodes]
        return tuple(value for value in found if value is not None)

    def items(self, node: Node, what: str) -> Sequence[Node]:
        """Return the items of a list, which is not empty."""
        items = node.items if isinstance(node, Items) else ()
        if not isinstance(node, Items):
            self.note_at(node.mark, f"{_kind(node)} where a list belongs", "write `- …` lines")
        elif not items:
            self.note_at(node.mark, f"an empty list of {what}", "leave it out, or fill it")
        elif len(items) > MAX_ITEMS:
            self.note_at(node.mark, f"{len(items)} of {what}", f"write at most {MAX_ITEMS}")
        return items[:MAX_ITEMS]

    def flag(self, key: str) -> bool:
        """Return the true or false at a key; absent is false."""
        found = self.json(key)
        if found is None or isinstance(found[0], bool):
            return found == (True,)
        self.note(key, f"{kind_of(found[0])} where true or false belongs", f"write `{key}: true`")
        return False

    def count(self, key: str, first: int, last: int) -> int | None:
        """Return the whole number at a key."""
        found = self.json(key)
        if found is None:
            return None
        value = found[0]
        if isinstance(value, int) and not isinstance(value, bool) and first <= value <= last:
            return value
        problem = f"not a whole number from {first} to {last}"
        self.note(key, problem, f"write a number, as `{key}: {min(10, last)}`")
        return None

    def number(self, key: str) -> int | float | None:
        """Return the number at a key."""
        found = self.json(key)
        if found is None:
            return None
        value = found[0]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        self.note(key, f"{kind_of(value)} where a number belongs", f"write `{key}: 10`")
        return None

    def understood(self, node: Node, understand: Callable[[Node], T]) -> T | None:
        """Return a node, understood; what is wrong with it is noted."""
        try:
            return understand(node)
        except BadValueError as bad:
            self.note_at(node.mark, bad.problem, bad.fix)
            return None

    def finish(self, known: Sequence[str]) -> None:
        """Note every key that nobody asked for."""
        for key in self._nodes:
            problem = f"{self._what} has no {key!a}"
            self.note(key, problem, suggestion(key, known))


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return what to write in place of a word that is not known."""
    near = difflib.get_close_matches(word.lower(), known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"write one of: {', '.join(known)}"


def _kind(node: Node) -> str:
    if isinstance(node, Items):
        return "a list"
    return "a table" if isinstance(node, Table) else "a single value" if node.text else "nothing"
