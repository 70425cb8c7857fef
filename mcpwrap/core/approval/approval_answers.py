"""Stored approvals and denials of people, for later requests with the same document."""

from dataclasses import dataclass

from mcpwrap.core.approval.entry import Key


@dataclass(slots=True)
class Grant:
    """Approval of up to `times` further runs, for the sessions that asked."""

    id: str
    by: str
    until_s: float
    times: int
    sessions: set[int]  # that asked


@dataclass(slots=True)
class Denial:
    """Denial for suspended requests of `sessions`, without asking a person again."""

    why: str
    until_s: float
    sessions: set[int]  # that were told to come again, and have not heard it


class StandingDecisions:
    """Grants and denials by account, server and document. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._grants_by_key: dict[Key, list[Grant]] = {}
        self._denials_by_key: dict[Key, list[Denial]] = {}

    def approve(self, key: Key, grant: Grant) -> None:
        """Keep an approval; those that other sessions have stay theirs."""
        self._grants_by_key.setdefault(key, []).append(grant)

    def deny(self, key: Key, denial: Denial) -> None:
        """Keep a denial, if somebody is to hear it."""
        if denial.sessions:
            self._denials_by_key.setdefault(key, []).append(denial)

    def use(self, session: int, key: Key, now_s: float) -> Grant | None:
        """Return an approval that a session has for a request, and count that it runs."""
        self.expire(now_s)
        for grant in self._grants_by_key.get(key, ()):
            if session in grant.sessions:
                grant.times -= 1
                return grant
        return None

    def why_denied(self, session: int, key: Key, now_s: float) -> str:
        """Return why a request is not asked about again; "" if it may be."""
        self.expire(now_s)
        denials = self._denials_by_key.get(key, [])
        return next((denial.why for denial in denials if session in denial.sessions), "")

    def is_over(self, session: int) -> None:
        """Forget what was answered for one session alone."""
        for by_key in (self._grants_by_key, self._denials_by_key):
            for answers in by_key.values():
                for answer in answers:
                    answer.sessions.discard(session)
        self.expire(float("-inf"))

    def expire(self, now_s: float) -> None:
        """Forget what holds no longer."""
        grants, denials = self._grants_by_key, self._denials_by_key
        for key in list(grants):
            grants[key] = [one for one in grants[key] if _holds(one, now_s) and one.times]
        for key in list(denials):
            denials[key] = [one for one in denials[key] if _holds(one, now_s)]
        self._grants_by_key = {key: left for key, left in grants.items() if left}
        self._denials_by_key = {key: left for key, left in denials.items() if left}

    def clear(self) -> None:
        """Forget it all."""
        self._grants_by_key.clear()
        self._denials_by_key.clear()


def _holds(answer: Grant | Denial, now_s: float) -> bool:
    return bool(answer.sessions) and now_s < answer.until_s
