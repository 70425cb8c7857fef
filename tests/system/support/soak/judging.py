"""Judgement of a run of `make soak`: the fault that explains each failure, and recovery times.

A failure lies between the last moment at which its session is known to have worked and its own end.
A fault explains it if it takes something away that this kind of session needs, and was there in
that time: from its beginning until a session of that kind that began after its end has worked, at
most `Fault.back_in_s` after its end.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.system.guest.soak.model import EACH, FAULTS, KINDS, Call, Done

GOOD = frozenset({"answered", "refused"})


@dataclass(frozen=True)
class Recovery:
    """Time from a fault until a call works in a session that began after it.

    `first_s` is of any kind of session that needs what the fault took away: this wait is mcpwrap's
    own. `all_s` is of the slowest kind that it broke: their servers all start at once.
    """

    fault: str
    first_s: float
    all_s: float


@dataclass(frozen=True)
class Judgement:
    """Result of a run: its calls, its faults, and the failures that no fault explains."""

    calls: Sequence[Call]
    faults: Sequence[Done]
    explained: Sequence[tuple[Call, Done]]
    unexplained: Sequence[Call]
    problems: Sequence[Done]  # faults that could not be injected, or whose end failed
    recoveries: Sequence[Recovery]
    recorded: int
    lost: Sequence[Call]

    @property
    def is_good(self) -> bool:
        """Return whether no failure is unexplained, and no record is lost."""
        return not (self.unexplained or self.lost or self.problems)


def concerns(fault: Done, kind: str) -> bool:
    """Return whether a fault takes away what this kind of session needs."""
    is_of_victim = fault.victim in {EACH, KINDS[kind].server}
    return fault.is_done and is_of_victim and bool(FAULTS[fault.fault].takes & KINDS[kind].needs)


def over_s(fault: Done, kind: str, calls: Sequence[Call]) -> float:
    """Return when a kind of session worked again after a fault; not later than it should."""
    limit_s = fault.ended_s + FAULTS[fault.fault].back_in_s
    return min(limit_s, _back_s(calls, kind, fault.ended_s))


def _back_s(calls: Sequence[Call], kind: str, after_s: float) -> float:
    back = (
        call.ended_s
        for call in calls
        if call.kind == kind and call.outcome in GOOD and call.session_s >= after_s and call.mark
    )
    return min(back, default=math.inf)


def explanation(call: Call, faults: Sequence[Done], calls: Sequence[Call]) -> Done | None:
    """Return the fault that explains a failure, the last one if there are several."""
    for fault in sorted(faults, key=lambda fault: fault.began_s, reverse=True):
        if call.outcome == "silent" and not FAULTS[fault.fault].is_silent:
            continue
        was_there = fault.began_s <= call.ended_s and call.since_s <= over_s(
            fault, call.kind, calls
        )
        if was_there and concerns(fault, call.kind):
            return fault
    return None


def recovery(fault: Done, calls: Sequence[Call]) -> Recovery | None:
    """Return how soon sessions that begin after a fault work; nothing if none was broken by it."""
    kinds = [kind for kind in KINDS if concerns(fault, kind)]
    broken = {
        call.kind
        for call in calls
        if call.kind in kinds
        and call.outcome not in GOOD
        and call.since_s <= fault.ended_s
        and call.ended_s >= fault.began_s
    }
    took_s = {kind: _back_s(calls, kind, fault.began_s) - fault.began_s for kind in kinds}
    back = [took_s[kind] for kind in broken if took_s[kind] < math.inf]
    return Recovery(fault.fault, min(took_s.values()), max(back)) if back else None


def judged(calls: Sequence[Call], faults: Sequence[Done], recorded: Iterable[str]) -> Judgement:
    """Return the result of a run. `recorded` are the marks in the audit."""
    explained: list[tuple[Call, Done]] = []
    unexplained: list[Call] = []
    by_kind = {kind: [call for call in calls if call.kind == kind] for kind in KINDS}
    for call in calls:
        if call.outcome in GOOD:
            continue
        fault = None
        if call.outcome != "wrong":
            fault = explanation(call, faults, by_kind[call.kind])
        if fault:
            explained.append((call, fault))
        else:
            unexplained.append(call)
    marks = frozenset(recorded)
    to_record = [c for c in calls if c.outcome in GOOD and c.mark and KINDS[c.kind].is_recorded]
    lost = [c for c in to_record if c.mark not in marks and not _may_lack_record(c, faults)]
    return Judgement(
        calls=calls,
        faults=faults,
        explained=explained,
        unexplained=unexplained,
        problems=[fault for fault in faults if fault.note.startswith("PROBLEM")],
        recoveries=[r for fault in faults if (r := recovery(fault, calls))],
        recorded=sum(call.mark in marks for call in to_record),
        lost=lost,
    )


def _may_lack_record(call: Call, faults: Sequence[Done]) -> bool:
    return call.outcome == "refused" and any(
        FAULTS[fault.fault].is_unrecorded
        and fault.began_s <= call.ended_s
        and call.began_s <= fault.ended_s
        for fault in faults
    )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that this share of all values does not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
