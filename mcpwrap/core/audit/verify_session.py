"""Verification of one session's hash chain, file by file, against the master chain."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mcpwrap.core.audit.hash_chain import NO_MAC, Chain
from mcpwrap.core.audit.reader import AuditReport, ChainReader
from mcpwrap.core.audit.records import ChainHead, Record, decode_record, part_file
from mcpwrap.core.audit.verify_master import ChainPosition, SessionHistory

# Records and marks have their times from one clock; a mark is written after what it tells of.
_MAX_LATE_S = 60.0


@dataclass(frozen=True, slots=True)
class UnreadableAuditFile:
    """File that is not read, as no gate leaves it in this state."""

    why: str


Read = Callable[
    [str], Iterable[bytes] | UnreadableAuditFile | None
]  # the lines of a plain file, if it is there


@dataclass(frozen=True, slots=True)
class EpochContext:
    """Context of a check that all session files of an epoch share."""

    folder: str
    read: Read
    report: AuditReport
    over_at: float | None  # when the epoch was; None while it may go on
    removed_before: float


def check_session(history: SessionHistory, setting: EpochContext) -> set[str]:
    """Check all of its files; return what they are called."""
    check = _Check(history, setting)
    setting.report.sessions += 1
    names = set()
    for part in range(1, len(history.parts) + 2):
        name = part_file(history.opened.session, part)
        names.add(name)
        check.file(name, part)
    return names


class _Check:
    def __init__(self, history: SessionHistory, setting: EpochContext) -> None:
        self._told = history
        self._setting = setting
        self._report = setting.report
        self._reader: ChainReader[Record] = ChainReader(
            Chain(history.key), decode_record, setting.report
        )
        self._begin = Chain(history.key)  # goes from one file to the next
        self._marks = iter(history.heads)  # those not yet come to
        self._next_mark = next(self._marks, None)
        self._is_late = False
        self._mark_by_count = {mark.head.count: mark for mark in history.heads}

    def file(self, name: str, part: int) -> None:
        """Check one file; the ones before it were."""
        told, path = self._told, f"{self._setting.folder}/{name}"
        begin = told.parts[part - 2].head if part > 1 else ChainHead(0, NO_MAC.hex())
        end = told.parts[part - 1] if part <= len(told.parts) else None
        self._go_to(begin)
        last = end or told.closed
        over_at = last.at if last else self._setting.over_at
        if over_at is not None:
            self._report.over_at[path] = over_at
        lines = self._setting.read(name)
        if lines is None:
            if over_at is None or over_at >= self._setting.removed_before:
                self._miss(path, begin, end)
            return None
        if isinstance(lines, UnreadableAuditFile):
            self._reader.is_lost = True
            return self._report.find(path, 0, lines.why)
        for number, record in self._reader.records(path, lines):
            self._report.records += 1
            self._check(path, number, record)
        if end is None:
            self._check_last(path)
        elif not self._reader.is_lost:
            self._check_count(path, end, at_most=end.head.count)
        return None

    def _go_to(self, begin: ChainHead) -> None:
        if self._reader.is_lost or self._reader.chain.count != begin.count:
            self._begin = self._begin.after(begin.count, NO_MAC)
            self._reader.restart(self._begin.after(begin.count, _mac(begin)))

    def _check(self, path: str, number: int, record: Record) -> None:
        opened = self._told.opened
        if (record.session, record.server, record.uid) != (
            opened.session,
            opened.server,
            opened.uid,
        ):
            self._report.find(path, number, "is of another session, server or agent than its file")
        self._check_time(path, number, record)
        mark = self._mark_by_count.get(self._reader.chain.count)
        if mark and mark.head.mac != self._reader.chain.mac.hex():
            what = f"is not the record that the master chain tells of in line {mark.line}"
            self._report.find(path, number, what)
            self._mark_by_count = {}  # none of those that follow can agree

    def _check_time(self, path: str, number: int, record: Record) -> None:
        """Find a session, once, that writes times which were not yet.

        Whoever reads the newest records would see those and no others.
        """
        while self._next_mark and self._next_mark.head.count < self._reader.chain.count:
            self._next_mark = next(self._marks, None)
        mark = self._next_mark
        if mark and not self._is_late and record.at > mark.latest_at + _MAX_LATE_S:
            late_s = record.at - mark.latest_at
            what = f"has a time {late_s:.0f} s after line {mark.line} of the master chain"
            self._report.find(path, number, f"{what}, which tells of it")
            self._is_late = True

    def _check_last(self, path: str) -> None:
        """Check how the session ended, if it did."""
        closed = self._told.closed
        if closed is None and self._setting.over_at is not None:
            what = "the session was not closed, as the gate was killed"
            self._report.remark(path, 0, f"{what}; what came last may be missing")
        if self._reader.is_lost:
            return
        if closed is None:
            if self._told.heads:
                self._check_count(path, self._told.heads[-1], at_most=None)
            return
        # It may have been killed when it had written a record, and before it had said so.
        self._check_count(path, closed, at_most=closed.head.count + 1)
        if self._reader.chain.count == closed.head.count + 1:
            what = "the session was killed when this was written, and had not yet counted it"
            self._report.remark(path, 0, f"the last record: {what}")

    def _check_count(self, path: str, mark: ChainPosition, at_most: int | None) -> None:
        count, told = self._reader.chain.count, mark.head.count
        if count < told:
            what = f"ends after record {count - 1}" if count else "has no record"
        elif at_most is not None and count > at_most:
            what = f"goes on to record {count - 1}"
        else:
            return
        by = f"the master chain tells of {told} records in line {mark.line}"
        self._report.find(path, 0, f"{what}; {by}")

    def _miss(self, path: str, begin: ChainHead, end: ChainPosition | None) -> None:
        heads = self._told.heads
        told = end.head.count if end else heads[-1].head.count if heads else 0
        if told > begin.count:
            self._report.find(path, 0, f"is missing; it had {told - begin.count} records or more")
        elif end is None and self._told.closed is None:
            self._report.remark(path, 0, "is not there; nothing tells that it had any record")


def _mac(head: ChainHead) -> bytes:
    try:
        return bytes.fromhex(head.mac)
    except ValueError:
        return NO_MAC  # no record will agree with it
