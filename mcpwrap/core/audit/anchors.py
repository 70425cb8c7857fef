"""Journal anchors of the audit's master chain, filtered by the process that writes them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from mcpwrap.core.audit.reader import AuditReport
from mcpwrap.core.audit.records import Anchor, EpochBegan, MasterEvent


@dataclass(frozen=True, slots=True)
class JournalAnchors:
    """Anchors in the journal for one run of the gate, from any of its processes."""

    anchors: list[Anchor] = field(default_factory=list)
    read_at: float | None = None  # None if the run was over by then


def mac_by_count(
    anchors: Iterable[Anchor], first: MasterEvent | None, file: str, report: AuditReport
) -> dict[int, str]:
    """Return the MACs of a master chain by the number of records that it had.

    Every process of the gate may write to the journal, and those of sessions parse the messages
    of agents and servers. `first` is the first record, which has the PID that writes anchors.
    """
    pid = first.pid if isinstance(first, EpochBegan) else 0
    macs: dict[int, str] = {}
    others = 0
    for anchor in anchors:
        if pid and anchor.pid != pid:
            others += 1
        elif macs.setdefault(anchor.count, anchor.mac) != anchor.mac:
            what = f"the journal has two different anchors for {anchor.count} records"
            report.find(file, 0, what)
    if others:
        what = f"the journal has {anchors_of(others)} from a process other than the monitor"
        report.remark(file, 0, what)
    return macs


def anchors_of(number: int) -> str:
    """Return a number of anchors in words."""
    return "1 anchor" if number == 1 else f"{number} anchors"
