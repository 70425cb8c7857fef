"""Definitions that a server has listed in one session, by name, as it listed them last."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.pins.definitions import Definition, DefinitionKey

MAX_NAMES = 16_384  # of one session; servers have hundreds at most


@dataclass(slots=True)
class _Pages:
    """Pages of a list up to now, from its first one."""

    cursor: str = ""  # of the next page
    is_first_use: bool = False
    digests_by_name: dict[str, frozenset[str]] = field(default_factory=dict)


class ListedDefinitions:
    """Digests of the definitions that a session was listed."""

    def __init__(self) -> None:
        self.is_full = False  # further names were not remembered
        self._digests: dict[DefinitionKey, frozenset[str]] = {}
        self._pages_by_method: dict[str, _Pages] = {}

    def digests_of(self, key: DefinitionKey) -> frozenset[str] | None:
        """Return the digests of a name, as it was listed last; None if it was not."""
        return self._digests.get(key)

    def add(self, one: Definition) -> None:
        """Remember a definition that is in no list."""
        self._remember([one], _Pages())

    def add_page(
        self,
        context: RequestContext,
        listed: Sequence[Definition],
        next_cursor: str,
        *,
        is_first_use: bool,
    ) -> bool:
        """Remember a page of a list; return whether it and all pages before it are of a first use.

        `is_first_use` is of this page alone.
        """
        pages = self._pages(context, next_cursor, is_first_use=is_first_use)
        self._remember(listed, pages)
        return pages.is_first_use

    def _pages(self, context: RequestContext, next_cursor: str, *, is_first_use: bool) -> _Pages:
        """Return the pages of a list with this one."""
        if not context.cursor:
            pages = _Pages(next_cursor, is_first_use)
            self._pages_by_method[context.method] = pages
            return pages
        pages = self._pages_by_method.setdefault(context.method, _Pages())
        if pages.cursor != context.cursor:  # a page of a list that was begun again, or elsewhere
            return _Pages(digests_by_name=pages.digests_by_name)
        pages.cursor = next_cursor
        pages.is_first_use &= is_first_use
        return pages

    def _remember(self, listed: Iterable[Definition], pages: _Pages) -> None:
        """Remember what was listed. A name that a list has twice has both definitions."""
        for one in listed:
            key = one.key
            if key not in self._digests and len(self._digests) >= MAX_NAMES:
                self.is_full = True
                continue
            before = pages.digests_by_name.get(key.name, frozenset())
            self._digests[key] = pages.digests_by_name[key.name] = before | {one.digest}
