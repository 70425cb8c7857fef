"""Journal anchors of the audit's master chain, filtered by the gate process that leaves them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from mcpwrap.core.audit.reader import AuditReport
from mcpwrap.core.audit.records import Anchor, EpochBegan, MasterEvent


@dataclass(frozen=True, slots=True)
class JournalAnchors:
    """Anchors in the journal for one run of the gate, whichever process sent them."""

    anchors: list[Anchor] = field(default_factory=list)
    read_at: float | None = None  # None if the run was over then


def mac_by_count(
    anchors: Iterable[Anchor], first: MasterEvent | None, file: str, report: AuditReport
) -> dict[int, str]:
    """Return the MACs of a master chain by how many records it had.

    All processes of the gate's may send to the journal, and those of sessions handle what agents
    and servers say. `first` is the first record, which tells which process leaves anchors.
    """
    pid = first.pid if isinstance(first, EpochBegan) else 0
    macs: dict[int, str] = {}
    others = 0
    for anchor in anchors:
        if pid and anchor.pid != pid:
            others += 1
        elif macs.setdefault(anchor.count, anchor.mac) != anchor.mac:
            what = f"the journal has two anchors of {anchor.count} records, and they differ"
            report.find(file, 0, what)
    if others:
        what = f"the journal has {anchors_of(others)} of another process than the gate's"
        report.remark(file, 0, what)
    return macs


def anchors_of(number: int) -> str:
    """Return a number of anchors in words."""
    return "1 anchor" if number == 1 else f"{number} anchors"
