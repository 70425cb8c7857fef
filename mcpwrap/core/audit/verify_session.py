"""Verification of one session's hash chain, file by file, against the master chain."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mcpwrap.core.audit.hash_chain import NO_MAC, Chain
from mcpwrap.core.audit.reader import AuditReport, ChainReader
from mcpwrap.core.audit.records import ChainHead, Record, decode_record, part_file
from mcpwrap.core.audit.verify_master import ChainPosition, SessionHistory

# Records and marks have their times from one clock; a mark is written after its records.
_MAX_LATE_S = 60.0


@dataclass(frozen=True, slots=True)
class UnreadableAuditFile:
    """File that is not read, because the gate never leaves a file in this state."""

    why: str


Read = Callable[
    [str], Iterable[bytes] | UnreadableAuditFile | None
]  # lines of a regular file; None if it does not exist


@dataclass(frozen=True, slots=True)
class EpochContext:
    """Context of a check that all session files of an epoch share."""

    folder: str
    read: Read
    report: AuditReport
    over_at: float | None  # end time of the epoch; None while it may continue
    removed_before: float


def check_session(history: SessionHistory, setting: EpochContext) -> set[str]:
    """Verify all files of a session; return their names."""
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
        self._history = history
        self._setting = setting
        self._report = setting.report
        self._reader: ChainReader[Record] = ChainReader(
            Chain(history.key), decode_record, setting.report
        )
        self._begin = Chain(history.key)  # advances from file to file
        self._marks = iter(history.heads)  # those not reached yet
        self._next_mark = next(self._marks, None)
        self._is_late = False
        self._mark_by_count = {mark.head.count: mark for mark in history.heads}

    def file(self, name: str, part: int) -> None:
        """Verify one file, after the files before it."""
        history, path = self._history, f"{self._setting.folder}/{name}"
        begin = history.parts[part - 2].head if part > 1 else ChainHead(0, NO_MAC.hex())
        end = history.parts[part - 1] if part <= len(history.parts) else None
        self._go_to(begin)
        last = end or history.closed
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
        opened = self._history.opened
        if (record.session, record.server, record.uid) != (
            opened.session,
            opened.server,
            opened.uid,
        ):
            self._report.find(path, number, "has another session, server or agent than its file")
        self._check_time(path, number, record)
        mark = self._mark_by_count.get(self._reader.chain.count)
        if mark and mark.head.mac != self._reader.chain.mac.hex():
            what = f"is not the record that line {mark.line} of the master chain has"
            self._report.find(path, number, what)
            self._mark_by_count = {}  # no later mark can agree

    def _check_time(self, path: str, number: int, record: Record) -> None:
        """Add a finding, once, for a session that writes times in the future.

        An operator who reads the newest records would see those and no others.
        """
        while self._next_mark and self._next_mark.head.count < self._reader.chain.count:
            self._next_mark = next(self._marks, None)
        mark = self._next_mark
        if mark and not self._is_late and record.at > mark.latest_at + _MAX_LATE_S:
            late_s = record.at - mark.latest_at
            what = f"has a time {late_s:.0f} s after line {mark.line} of the master chain"
            self._report.find(path, number, f"{what}, which already has it")
            self._is_late = True

    def _check_last(self, path: str) -> None:
        """Verify the session's end, if it has ended."""
        closed = self._history.closed
        if closed is None and self._setting.over_at is not None:
            what = "the session was not closed, because the gate was killed"
            self._report.remark(path, 0, f"{what}; its last records may be missing")
        if self._reader.is_lost:
            return
        if closed is None:
            if self._history.heads:
                self._check_count(path, self._history.heads[-1], at_most=None)
            return
        # It may have been killed after it wrote a record and before it counted the record.
        self._check_count(path, closed, at_most=closed.head.count + 1)
        if self._reader.chain.count == closed.head.count + 1:
            what = "the session was killed after it wrote this and before it counted it"
            self._report.remark(path, 0, f"the last record: {what}")

    def _check_count(self, path: str, mark: ChainPosition, at_most: int | None) -> None:
        count, recorded = self._reader.chain.count, mark.head.count
        if count < recorded:
            what = f"ends after record {count - 1}" if count else "has no record"
        elif at_most is not None and count > at_most:
            what = f"continues to record {count - 1}"
        else:
            return
        by = f"line {mark.line} of the master chain has {recorded} records"
        self._report.find(path, 0, f"{what}; {by}")

    def _miss(self, path: str, begin: ChainHead, end: ChainPosition | None) -> None:
        heads = self._history.heads
        recorded = end.head.count if end else heads[-1].head.count if heads else 0
        if recorded > begin.count:
            self._report.find(
                path, 0, f"is missing; it had at least {recorded - begin.count} records"
            )
        elif end is None and self._history.closed is None:
            self._report.remark(path, 0, "does not exist; nothing shows that it had a record")


def _mac(head: ChainHead) -> bytes:
    try:
        return bytes.fromhex(head.mac)
    except ValueError:
        return NO_MAC  # no record will agree with it
