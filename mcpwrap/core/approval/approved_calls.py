"""Approved calls of hubs: each covers one call of a member, so that a person is asked once.

Times are seconds of one monotonic clock.
"""

from dataclasses import dataclass

VALID_FOR_S = 60.0  # from the approval: a member that has to be started needs some seconds


@dataclass(frozen=True, slots=True)
class ApprovedCall:
    """Call that a person has approved, by the id of the question."""

    id: str
    by: str
    until_s: float
    in_client: bool  # approved in the agent's own window


class ApprovedCalls:
    """Approved calls by the hub's session, and by the digest of what the person was shown."""

    def __init__(self) -> None:
        self._calls_by_key: dict[tuple[str, str], list[ApprovedCall]] = {}

    def add(self, session: str, digest: str, call: ApprovedCall) -> None:
        """Store a call that a person has just approved."""
        self._calls_by_key.setdefault((session, digest), []).append(call)

    def use(
        self, session: str, digest: str, now_s: float, *, also_in_client: bool
    ) -> ApprovedCall | None:
        """Return an approved call, once; None if there is none, or if it has expired."""
        self.expire(now_s)
        calls = self._calls_by_key.get((session, digest), [])
        found = next((one for one in calls if also_in_client or not one.in_client), None)
        if found is not None:
            calls.remove(found)
        return found

    def is_over(self, session: str) -> None:
        """Remove the calls of a session that has ended."""
        for key in [key for key in self._calls_by_key if key[0] == session]:
            del self._calls_by_key[key]

    def expire(self, now_s: float) -> None:
        """Remove what is no longer valid."""
        left = {
            key: [one for one in calls if now_s < one.until_s]
            for key, calls in self._calls_by_key.items()
        }
        self._calls_by_key = {key: calls for key, calls in left.items() if calls}

    def clear(self) -> None:
        """Remove everything."""
        self._calls_by_key.clear()
