"""Collector of what a server lists in one session, as it sent it: all pages of each list.

The definitions are kept once all lists are complete that the server's capabilities name. A list
whose last page never comes changes nothing.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
from msgspec.structs import replace

from mcpwrap.core.gate.in_flight import MAX_CURSOR_CHARS, RequestContext
from mcpwrap.core.pins.definitions import describes_itself, server_definition
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import METHOD_NOT_FOUND
from mcpwrap.core.protocol.strict_json import encode
from mcpwrap.core.wire.hub import hub_catalogue
from mcpwrap.core.wire.hub.hub_catalogue import (
    LISTS,
    MAX_DEFINITIONS_BYTES,
    MAX_ENTRIES,
    Definitions,
)

_DESCRIPTIONS = frozenset({methods.INITIALIZE, methods.DISCOVER})


class DefinitionsStore(Protocol):
    """Interface of the store of definitions, which the session's process implements."""

    def keep(self, definitions: bytes) -> bool:
        """Store definitions, in the format of `hub_catalogue`; return False for "too often"."""

    def leave_out(self, why: str) -> None:
        """Log that definitions are not kept."""


@dataclass(slots=True)
class _Pages:
    """Pages of a list up to now; `cursor` is that of the next one."""

    entries: list[msgspec.Raw] = field(default_factory=list)
    size: int = 0  # bytes
    cursor: str = ""


class DefinitionsCollector:
    """Definitions of the server of one session."""

    def __init__(self, store: DefinitionsStore) -> None:
        self._store = store
        self._about: Definitions | None = None  # without lists
        self._capabilities: frozenset[str] = frozenset()
        self._pages_by_method: dict[str, _Pages] = {}
        self._complete_by_method: dict[str, tuple[msgspec.Raw, ...]] = {}
        self._kept = b""  # digest of the definitions that were stored last

    def take_result(self, context: RequestContext, value: dict[str, Json]) -> None:
        """Take the result of a request, as the server sent it."""
        if context.method in _DESCRIPTIONS:
            self._take_description(value)
        elif context.method not in LISTS or not self._take_page(context, value):
            return
        self._keep()

    def take_failure(self, context: RequestContext, code: Json) -> None:
        """Take an error: a server that does not have the method has an empty list."""
        if context.method in LISTS and not context.cursor and code == METHOD_NOT_FOUND:
            self._complete_by_method[context.method] = ()
            self._keep()

    def _take_description(self, value: dict[str, Json]) -> None:
        capabilities, instructions = value.get("capabilities"), value.get("instructions")
        if not isinstance(capabilities, dict):
            capabilities = {}
        text = instructions if isinstance(instructions, str) else ""
        self._about = Definitions(
            capabilities=msgspec.Raw(encode(capabilities)),
            instructions=text,
            server_digest=server_definition(value).digest if describes_itself(value) else "",
        )
        self._capabilities = frozenset(capabilities)

    def _take_page(self, context: RequestContext, value: dict[str, Json]) -> bool:
        """Add a page to its list; return whether the list is complete."""
        pages = self._pages_by_method.pop(context.method, None) if context.cursor else _Pages()
        if pages is None or pages.cursor != context.cursor:
            return False  # the page of a list that was begun again
        entries, cursor = value.get(LISTS[context.method].key), value.get("nextCursor")
        if not isinstance(entries, list) or len(pages.entries) + len(entries) > MAX_ENTRIES:
            self._store.leave_out(f"{context.method} is not a list of up to {MAX_ENTRIES} entries")
            return False
        pages.entries += [msgspec.Raw(encode(entry)) for entry in entries]
        pages.size += sum(len(bytes(raw)) for raw in pages.entries[-len(entries) :] if entries)
        if pages.size > MAX_DEFINITIONS_BYTES:
            self._store.leave_out(f"{context.method} has over {MAX_DEFINITIONS_BYTES} bytes")
            return False
        if isinstance(cursor, str) and cursor and len(cursor) <= MAX_CURSOR_CHARS:
            pages.cursor = cursor
            self._pages_by_method[context.method] = pages
            return False
        if cursor:
            self._store.leave_out(f"{context.method} has a cursor that is not a short string")
            return False
        self._complete_by_method[context.method] = tuple(pages.entries)
        return True

    def _keep(self) -> None:
        """Store the definitions, if they are complete and were changed."""
        lists = {method: kind for method, kind in LISTS.items() if kind.of in self._capabilities}
        if self._about is None or not lists.keys() <= self._complete_by_method.keys():
            return
        found = {kind.field: self._complete_by_method[method] for method, kind in lists.items()}
        text = hub_catalogue.encode_definitions(replace(self._about, **found))
        digest = hashlib.sha256(text).digest()
        if digest == self._kept:
            return
        if len(text) > MAX_DEFINITIONS_BYTES:
            self._store.leave_out(f"they have over {MAX_DEFINITIONS_BYTES} bytes")
        elif self._store.keep(text):
            self._kept = digest
