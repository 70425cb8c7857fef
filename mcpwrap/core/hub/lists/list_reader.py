"""Reader of a member's lists: all pages of each, and the definitions that they make up."""

from collections.abc import Iterable

import msgspec

from mcpwrap.core.protocol.raw_message import elements_of, fields_of, text_at, value_of
from mcpwrap.core.wire.hub.hub_catalogue import (
    LISTS,
    MAX_DEFINITIONS_BYTES,
    MAX_ENTRIES,
    Definitions,
)

MAX_PAGES = 256
MAX_CURSOR_CHARS = 4096
_FIELDS = tuple(kind.field for kind in LISTS.values())


def lists_of(capabilities: Iterable[str]) -> list[str]:
    """Return the methods of the lists that a member with these capabilities has."""
    return [method for method, kind in LISTS.items() if kind.of in capabilities]


class ListReader:
    """Reader of one list, page by page."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.entries: list[msgspec.Raw] = []
        self.error = ""  # why it is not a list
        self.cut = ""  # why it was not read to its end
        self._key = LISTS[method].key
        self._cursors: set[str] = set()
        self._bytes = 0

    def take(self, result: msgspec.Raw) -> str | None:
        """Take a page; return the cursor of the next one, or None after the last."""
        page = fields_of(result)
        listed = page.get(self._key)
        if listed is None or not bytes(listed).startswith(b"["):
            self.error = f"its result has no {self._key}"
            return None
        for raw in elements_of(listed):
            self._bytes += len(bytes(raw))
            if self._bytes > MAX_DEFINITIONS_BYTES or len(self.entries) >= MAX_ENTRIES:
                self.cut = f"it has over {MAX_ENTRIES} entries or {MAX_DEFINITIONS_BYTES} bytes"
                return None
            self.entries.append(raw.copy())
        return self._next(text_at(page, "nextCursor"))

    def _next(self, cursor: str) -> str | None:
        if cursor in self._cursors:
            self.cut = "it repeats a cursor"
        elif len(self._cursors) >= MAX_PAGES:
            self.cut = f"it has over {MAX_PAGES} pages"
        elif len(cursor) > MAX_CURSOR_CHARS:
            self.cut = f"its cursor has over {MAX_CURSOR_CHARS} characters"
        if self.cut or not cursor:
            return None
        self._cursors.add(cursor)
        return cursor


def with_list(before: Definitions, method: str, entries: Iterable[msgspec.Raw]) -> Definitions:
    """Return definitions with one list replaced."""
    return msgspec.structs.replace(before, **{LISTS[method].field: tuple(entries)})


def has_entries(definitions: Definitions) -> bool:
    """Return whether a member lists anything."""
    return any(getattr(definitions, key) for key in _FIELDS)


def unchanged_kept(before: Definitions | None, now: Definitions) -> Definitions:
    """Return definitions with the text of before for each list that means the same as before.

    Lists that only another program has encoded are no change: agents pay for each one.
    """
    if before is None:
        return now
    kept = {
        key: was
        for key in _FIELDS
        if (was := getattr(before, key)) != (found := getattr(now, key))
        and list(map(value_of, was)) == list(map(value_of, found))
    }
    return msgspec.structs.replace(now, **kept)
