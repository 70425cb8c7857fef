"""Table of names that a member has used, bounded for each member: none can fill that of another."""

from collections.abc import Iterator

MAX_NAMES = 1024
MAX_CHARS = 2048  # of one name; a longer one is not noted


class BoundedNames:
    """Names in the order of their last use. A new name takes the place of the oldest."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def add(self, name: str) -> None:
        """Note a name."""
        if not 0 < len(name) <= MAX_CHARS:
            return
        self._names.pop(name, None)
        self._names[name] = None
        if len(self._names) > MAX_NAMES:
            del self._names[next(iter(self._names))]
