"""Filter of pending approvals that were not announced yet, so that each is announced once."""

from collections.abc import Iterable

from mcpwrap.core.wire.approval_socket import Pending


class UnseenItems:
    """Pending approvals of the last call. It stores no others, so its size is bounded."""

    def __init__(self) -> None:
        self._waiting: frozenset[str] = frozenset()

    def unseen(self, pending: Iterable[Pending]) -> list[Pending]:
        """Return the approvals that were not pending at the last call, oldest first."""
        now = list(pending)
        new = [one for one in now if one.id not in self._waiting]
        self._waiting = frozenset(one.id for one in now)
        return new

    def was_pending(self, id_: str) -> bool:
        """Return whether an approval was pending at the last call."""
        return id_ in self._waiting
