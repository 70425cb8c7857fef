"""Verification of the audit's hash chains by root's key: changed, removed, missing records.

The caller reads, in this order: the anchors, the keys, the folders, the files. So records that are
written meanwhile are additional ones, and none that must be there can be missing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mcpwrap.core.audit.anchors import JournalAnchors, anchors_of
from mcpwrap.core.audit.reader import AuditReport
from mcpwrap.core.audit.records import MASTER, Anchor, Keys, folder_of, start_of
from mcpwrap.core.audit.verify_master import MasterChainCheck
from mcpwrap.core.audit.verify_pins import PinsCheck, PinsFileState
from mcpwrap.core.audit.verify_session import EpochContext, Read, UnreadableAuditFile, check_session
from mcpwrap.core.text.sanitise import shown


@dataclass(frozen=True, slots=True)
class EpochFolder:
    """Files of one epoch. `names` is listed before any of them is read."""

    names: frozenset[str]
    read: Read


def check(
    keys: Keys,
    folders: Mapping[str, EpochFolder | None],
    anchors: Iterable[Anchor],
    now: float,
    pins: Mapping[str, PinsFileState] | None = None,
) -> AuditReport:
    """Verify all epochs. A None in `folders` is an object that is not a folder.

    `now` is the time at which the anchors were read, in seconds since 1970. `pins` are the pins of
    servers, which were read after that; an agent's own audit has none.
    """
    report = AuditReport()
    pins_check = PinsCheck(report, is_complete=keys.first_epoch == 1)
    anchored = _anchored(keys, anchors, report)
    expected = range(keys.first_epoch, keys.epochs + 1)
    for epoch in expected:
        folder = folders.get(folder_of(epoch))
        if folder is None:
            _miss(keys, epoch, report)
            pins_check.lose()
        else:
            report.epochs += 1
            journal = JournalAnchors(anchored.get(epoch, []), now if epoch == keys.epochs else None)
            master = _check_epoch(keys, epoch, folder, report, journal)
            _follow_pins(pins_check, f"{folder_of(epoch)}/{MASTER}", master)
    if pins is not None:
        pins_check.compare(pins)
    _look_at_others(keys, folders.keys() - {folder_of(epoch) for epoch in expected}, report)
    return report


def _follow_pins(check: PinsCheck, file: str, master: MasterChainCheck | None) -> None:
    if master is None:
        check.lose()
        return
    if master.was_lost:  # a change that is missing may precede the first one of this run
        check.lose()
    check.take(file, master.pins)
    if master.was_lost:  # or follow the last one, before the next run and the file
        check.lose()


def _miss(keys: Keys, epoch: int, report: AuditReport) -> None:
    if epoch == keys.epochs and not keys.is_begun:
        report.remark(folder_of(epoch), 0, "the gate could not begin this run, and had no session")
    else:
        report.find(folder_of(epoch), 0, "the folder of a run of the gate is missing")


def _look_at_others(keys: Keys, names: set[str], report: AuditReport) -> None:
    removed = {folder_of(epoch) for epoch in range(1, keys.first_epoch)}
    for name in sorted(names):
        if name in removed:
            report.remark(name, 0, "was marked for removal, and is not checked")
        else:
            report.find(shown(name), 0, "is not a folder of the audit")


def _anchored(
    keys: Keys, anchors: Iterable[Anchor], report: AuditReport
) -> dict[int, list[Anchor]]:
    """Return the anchors by epoch."""
    by_epoch: dict[int, list[Anchor]] = {}
    unknown = 0
    for anchor in anchors:
        if anchor.epoch > keys.epochs:
            unknown += 1
        else:
            by_epoch.setdefault(anchor.epoch, []).append(anchor)
    if unknown:  # an attacker who controls a process of the gate can send one
        report.remark("journal", 0, f"has {anchors_of(unknown)} of runs that never took place")
    return by_epoch


def _check_epoch(
    keys: Keys, epoch: int, folder: EpochFolder, report: AuditReport, journal: JournalAnchors
) -> MasterChainCheck | None:
    """Verify one epoch; return its master chain, if that could be read."""
    name = folder_of(epoch)
    master = MasterChainCheck(epoch, start_of(keys.root_key, epoch).key, report)
    lines = folder.read(MASTER)
    if isinstance(lines, UnreadableAuditFile):  # without it the other files cannot be checked
        report.find(f"{name}/{MASTER}", 0, lines.why)
        return None
    master.read(f"{name}/{MASTER}", lines or (), journal)
    is_over = master.is_ended or epoch < keys.epochs
    if is_over and not master.is_ended:
        report.remark(name, 0, "this run has no end record: the gate was killed")
    over_at = master.latest_at if is_over else None
    if over_at is not None:
        report.over_at[f"{name}/{MASTER}"] = over_at
    setting = EpochContext(name, folder.read, report, over_at, keys.removed_before)
    known = {MASTER}
    for history in master.sessions.values():
        known |= check_session(history, setting)
    for file in sorted(folder.names - known):
        report.find(f"{name}/{shown(file)}", 0, "is not a file of a session in the master chain")
    return master
