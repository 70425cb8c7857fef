"""Emergency stop: the servers that refuse every session until the stop is lifted."""

from collections.abc import Iterable

import msgspec


class Panic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of the two files `panic.json`: that of this boot, in memory, and that on the disk.

    A server is stopped if either file stops it. Without both files no server is stopped.
    """

    everything: bool = False
    names: tuple[str, ...] = ()

    def stops(self, name: str) -> bool:
        """Return whether this server refuses every session."""
        return self.everything or name in self.names

    def with_names(self, names: Iterable[str]) -> "Panic":
        """Return a copy that stops these servers too; without names, one that stops all."""
        added = frozenset(names)
        return Panic(
            everything=self.everything or not added,
            names=tuple(sorted(added.union(self.names))),
        )

    def merged(self, other: "Panic") -> "Panic":
        """Return the union of two files."""
        both = frozenset(self.names).union(other.names)
        return Panic(everything=self.everything or other.everything, names=tuple(sorted(both)))

    def without_names(self, names: Iterable[str]) -> "Panic":
        """Return a copy without these servers; without names, one that stops no server."""
        gone = frozenset(names)
        if not gone:
            return Panic()
        return Panic(
            everything=self.everything, names=tuple(n for n in self.names if n not in gone)
        )


def decode(text: bytes) -> Panic:
    """Parse a file. A malformed file stops every server, and so does an empty file."""
    try:
        return msgspec.json.decode(text, type=Panic)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Panic(everything=True)


def encode(panic: Panic) -> str:
    """Return the text of the file."""
    return msgspec.json.encode(panic).decode() + "\n"
