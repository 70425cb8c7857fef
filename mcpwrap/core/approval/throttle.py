"""Throttling against approval fatigue: a pause for agents that ask too often or are often denied.

A person who has been asked a hundred times approves the hundred-and-first request unread.
"""

from collections import deque
from dataclasses import dataclass, field

MAX_DENIALS, DENIALS_WITHIN_S = 5, 600.0
MAX_NEW, NEW_WITHIN_S = 40, 60.0  # new questions
PAUSE_S = 600.0
_MAX_KNOWN = 4096  # pairs of agent and server; those that asked longest ago are dropped first


@dataclass(slots=True)
class _Known:
    denied_at_s: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_DENIALS))
    asked_at_s: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_NEW))
    paused_until_s: float = 0.0
    why: str = ""


@dataclass(frozen=True, slots=True)
class ThrottlePause:
    """Pause in which one agent's requests to one server are refused without asking a person."""

    agent_uid: int
    server: str
    why: str
    until_s: float


class ApprovalThrottle:
    """Approval counters by agent UID and server. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], _Known] = {}

    def why_paused(self, uid: int, server: str, now_s: float) -> str:
        """Return why the agent may not ask now; "" if it may."""
        known = self._known.get((uid, server))
        if known is None or now_s >= known.paused_until_s:
            return ""
        return f"{known.why}; retry in {int(known.paused_until_s - now_s) + 1} s"

    def asked(self, uid: int, server: str, now_s: float) -> str:
        """Count a new question; return why it may not be asked, if it is one too many."""
        known = self._of(uid, server)
        if len(known.asked_at_s) == MAX_NEW and now_s - known.asked_at_s[0] < NEW_WITHIN_S:
            known.why = f"paused: {MAX_NEW} questions in {NEW_WITHIN_S:.0f} s"
            known.paused_until_s = now_s + NEW_WITHIN_S
            return known.why
        known.asked_at_s.append(now_s)
        return ""

    def denied(self, uid: int, server: str, now_s: float) -> None:
        """Count a denial; too many of them start a pause."""
        known = self._of(uid, server)
        known.denied_at_s.append(now_s)
        is_many = len(known.denied_at_s) == MAX_DENIALS
        if is_many and now_s - known.denied_at_s[0] < DENIALS_WITHIN_S:
            known.why = f"paused: {MAX_DENIALS} requests were denied"
            known.paused_until_s = now_s + PAUSE_S
            known.denied_at_s.clear()

    def approved(self, uid: int, server: str) -> None:
        """Reset the count of denials: only consecutive ones count."""
        self._of(uid, server).denied_at_s.clear()

    def pauses(self, now_s: float) -> list[ThrottlePause]:
        """Return the pauses that are in force."""
        return [
            ThrottlePause(uid, server, known.why, known.paused_until_s)
            for (uid, server), known in self._known.items()
            if now_s < known.paused_until_s
        ]

    def _of(self, uid: int, server: str) -> _Known:
        known = self._known.pop((uid, server), None) or _Known()
        self._known[uid, server] = known
        if len(self._known) > _MAX_KNOWN:
            del self._known[next(iter(self._known))]
        return known
