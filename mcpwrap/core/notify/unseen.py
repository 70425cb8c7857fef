"""Filter of pending approvals that were not there before, so that each is announced once."""

from collections.abc import Iterable

from mcpwrap.core.wire.approval_socket import Pending


class UnseenItems:
    """Pending approvals of the last call, and nothing else, so it grows with nothing else."""

    def __init__(self) -> None:
        self._waiting: frozenset[str] = frozenset()

    def unseen(self, pending: Iterable[Pending]) -> list[Pending]:
        """Return those that did not wait at the last call, the oldest first."""
        now = list(pending)
        new = [one for one in now if one.id not in self._waiting]
        self._waiting = frozenset(one.id for one in now)
        return new

    def was_pending(self, id_: str) -> bool:
        """Say whether it waited at the last call."""
        return id_ in self._waiting
