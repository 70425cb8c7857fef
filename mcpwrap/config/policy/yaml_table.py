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
    """Reader of one table of a policy.

    No method raises: for a wrong value it returns nothing, and adds a flaw to the list.
    """

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
                node.mark,
                f"{_kind(node)} where {what} belongs",
                "write `key: value` lines",
                code="E-POLICY-TYPE",
            )

    def has(self, key: str) -> bool:
        """Return whether the table has the key."""
        return key in self._keys

    def mark_of(self, key: str) -> SourcePosition:
        """Return the position of a key, or of the table if it does not have the key."""
        return self._keys.get(key, self.mark)

    def note(self, key: str, problem: str, fix: str, *, code: str) -> None:
        """Add a flaw at a key, or at the beginning of the table if it does not have the key."""
        self.note_at(self.mark_of(key), problem, fix, code=code)

    def note_at(self, mark: SourcePosition, problem: str, fix: str, *, code: str) -> None:
        """Add a flaw at a position."""
        self._flaws.append(Flaw(mark, problem, fix, code=code))

    def node(self, key: str) -> Node | None:
        """Return the node at a key, once; then None."""
        return self._nodes.pop(key, None)

    def text(self, key: str, parse: Callable[[str], T]) -> T | None:
        """Return the text at a key, parsed."""
        node = self.node(key)
        return None if node is None else self.understood(node, lambda n: parse(text_of(n)))

    def json(self, key: str) -> tuple[Json] | None:
        """Return the value at a key, in a tuple since it may be null."""
        node = self.node(key)
        return None if node is None else self.understood(node, lambda n: (json_of(n),))

    def texts(self, key: str, parse: Callable[[str], T]) -> tuple[T, ...]:
        """Return the text or the list of texts at a key, each parsed."""
        node = self.node(key)
        nodes = (
            [] if node is None else [node] if isinstance(node, Scalar) else self.items(node, key)
        )
        found = [self.understood(n, lambda n: parse(text_of(n))) for n in nodes]
        return tuple(value for value in found if value is not None)

    def items(self, node: Node, what: str) -> Sequence[Node]:
        """Return the items of a list. An empty list, or one with too many items, is a flaw."""
        items = node.items if isinstance(node, Items) else ()
        if not isinstance(node, Items):
            self.note_at(
                node.mark,
                f"{_kind(node)} where a list belongs",
                "write `- …` lines",
                code="E-POLICY-TYPE",
            )
        elif not items:
            self.note_at(
                node.mark,
                f"an empty list of {what}",
                "remove the key, or write at least one item",
                code="E-POLICY-EMPTY-LIST",
            )
        elif len(items) > MAX_ITEMS:
            self.note_at(
                node.mark,
                f"{len(items)} {what}",
                f"write at most {MAX_ITEMS}",
                code="E-POLICY-TOO-MANY",
            )
        return items[:MAX_ITEMS]

    def flag(self, key: str) -> bool:
        """Return the true or false at a key; false if it is absent."""
        found = self.json(key)
        if found is None or isinstance(found[0], bool):
            return found == (True,)
        self.note(
            key,
            f"{kind_of(found[0])} where true or false belongs",
            f"write `{key}: true`",
            code="E-POLICY-TYPE",
        )
        return False

    def count(self, key: str, first: int, last: int) -> int | None:
        """Return the whole number at a key, from `first` to `last`."""
        found = self.json(key)
        if found is None:
            return None
        value = found[0]
        if isinstance(value, int) and not isinstance(value, bool) and first <= value <= last:
            return value
        self.note(
            key,
            f"not a whole number from {first} to {last}",
            f"write a number, such as `{key}: {min(10, last)}`",
            code="E-POLICY-NUMBER",
        )
        return None

    def number(self, key: str) -> int | float | None:
        """Return the number at a key."""
        found = self.json(key)
        if found is None:
            return None
        value = found[0]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        self.note(
            key,
            f"{kind_of(value)} where a number belongs",
            f"write `{key}: 10`",
            code="E-POLICY-TYPE",
        )
        return None

    def understood(self, node: Node, parse: Callable[[Node], T]) -> T | None:
        """Return a node, parsed; an error in it is noted."""
        try:
            return parse(node)
        except BadValueError as bad:
            self.note_at(node.mark, bad.problem, bad.fix, code=bad.code)
            return None

    def finish(self, known: Sequence[str]) -> None:
        """Note every key that was not read."""
        for key in self._nodes:
            self.note(
                key,
                f"{self._what} has no key {key!a}",
                suggestion(key, known),
                code="E-POLICY-UNKNOWN-KEY",
            )


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return the fix for an unknown word: the nearest known word, or all of them."""
    near = difflib.get_close_matches(word.lower(), known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"write one of: {', '.join(known)}"


def _kind(node: Node) -> str:
    if isinstance(node, Items):
        return "a list"
    return "a table" if isinstance(node, Table) else "a single value" if node.text else "nothing"
