"""Verification of the master hash chain of one epoch, and of its entries on each session."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain as joined
from itertools import islice
from typing import assert_never

from mcpwrap.core.audit.anchors import JournalAnchors, mac_by_count
from mcpwrap.core.audit.hash_chain import NO_MAC, Chain
from mcpwrap.core.audit.reader import AuditReport, ChainReader
from mcpwrap.core.audit.records import (
    MAX_NUMBER_DIGITS,
    MAX_PART_BYTES,
    MAX_PART_DIGITS,
    ApprovalAnswered,
    ChainHead,
    EpochBegan,
    EpochEnded,
    MasterEvent,
    PolicyInForce,
    SessionClosed,
    SessionHeads,
    SessionOpened,
    SessionPart,
    cut,
    decode_event,
)

_Later = (
    ApprovalAnswered
    | EpochBegan
    | PolicyInForce
    | SessionHeads
    | SessionPart
    | SessionClosed
    | EpochEnded
)
# As long as a record may wait for its anchor: the gate leaves one every 10 s.
_MAX_UNANCHORED_S = 60.0
_MAX_BACK_S = 5.0  # as far as a clock is put right without anybody's noticing
_NUMBER = re.compile(rf"[0-9]{{1,{MAX_NUMBER_DIGITS}}}")
_MAX_PARTS = 10**MAX_PART_DIGITS - 1
_MAX_IN_PART = MAX_PART_BYTES // 64  # no record is as short as that


@dataclass(frozen=True, slots=True)
class ChainPosition:
    """Chain head of a session at one time, and the line of the master chain that has it."""

    head: ChainHead
    at: float
    line: int
    latest_at: float  # as late as it can have been then, by the clock that showed the time before


@dataclass(slots=True)
class SessionHistory:
    """Entries of the master chain on one session."""

    opened: SessionOpened
    key: bytes | bytearray  # of its first record
    heads: list[ChainPosition] = field(default_factory=list)  # all of them, oldest first
    parts: list[ChainPosition] = field(
        default_factory=list
    )  # where the second file begins, and so on
    closed: ChainPosition | None = None


class MasterChainCheck:
    """Verifier of the master chain of one epoch."""

    def __init__(self, epoch: int, key: bytes | bytearray, report: AuditReport) -> None:
        self.sessions: dict[str, SessionHistory] = {}
        # Later than all before it, whatever a record says: who has the key of this moment can write
        # any time, and would else have what was recorded before he came be too old to be missed.
        self.latest_at = 0.0
        self.is_ended = False
        self._anchored = 0  # records, up to the last that the journal has an anchor of
        self._since: tuple[MasterEvent, MasterEvent] | None = (
            None  # the first of those behind it, and the last
        )
        self._last_at = self._last_up = 0.0
        self._clock_at = 0.0  # see `Mark.latest_at`
        self._epoch = epoch
        self._file = ""
        self._report = report
        self._reader: ChainReader[MasterEvent] = ChainReader(Chain(key), decode_event, report)
        self._keys = Chain(key)  # goes from one opening to the next, for the keys of sessions

    def read(self, file: str, lines: Iterable[bytes], journal: JournalAnchors) -> None:
        """Check all of it."""
        self._file = file
        events = self._reader.records(file, lines)
        first = list(islice(events, 1))
        macs = mac_by_count(journal.anchors, first[0][1] if first else None, file, self._report)
        for number, event in joined(first, events):
            self._check_order(number, event)
            if isinstance(event, SessionOpened):
                self._open(number, event)
            else:
                self._take(number, event)
            self._compare(number, event, macs)
        if not self._reader.is_lost:
            self._check_end(max(macs, default=0), journal.read_at)

    def _compare(self, number: int, event: MasterEvent, macs: dict[int, str]) -> None:
        chain = self._reader.chain
        mac = macs.get(chain.count)
        if mac == chain.mac.hex():
            self._anchored, self._since = chain.count, None
            return
        self._since = (self._since[0] if self._since else event, event)
        if mac is not None:
            self._find(number, "is not what the journal has an anchor of")

    def _check_end(self, anchored: int, now: float | None) -> None:
        count = self._reader.chain.count
        if anchored > count:
            self._find(0, f"ends after {count} records; the journal has an anchor of {anchored}")
        elif not count:
            self._remark(0, "nothing was written down in this run of the gate")
        elif self.is_ended:
            pass  # the last record is there, and so all are
        elif not anchored:
            what = "the journal has no anchor: were the last lines gone, nobody could see it"
            self._remark(0, what)
        elif self._unanchored_s(now) > _MAX_UNANCHORED_S:
            # The journal drops what is too much at a time, and whoever sends that is told nothing.
            what = f"no anchor in the journal after record {self._anchored - 1}"
            self._remark(0, f"{what}: what was removed behind it is not seen")

    def _unanchored_s(self, now: float | None) -> float:
        """Return for how long at least records came, and no anchor of any."""
        if self._since is None:
            return 0.0
        first, last = self._since
        # By the clock that nobody sets, if it was written down.
        since_s = last.up - first.up if first.up else last.at - first.at
        return since_s if now is None else max(since_s, now - first.at)

    def _check_order(self, number: int, event: MasterEvent) -> None:
        if self.is_ended:
            self._find(number, "comes after the end of the gate's run")
        is_first = self._reader.chain.count == 1
        if isinstance(event, EpochBegan) != is_first:
            self._find(number, "is not what a run of the gate begins with")
        if isinstance(event, EpochBegan) and event.epoch != self._epoch:
            self._find(number, f"is of run {event.epoch}")
        if event.at < self._last_at - _MAX_BACK_S:
            back_s = self._last_at - event.at
            self._remark(number, f"the clock was put back by {back_s:.0f} s")
        since_s = max(0.0, event.up - self._last_up)
        self.latest_at = max(self.latest_at, event.at)
        self._clock_at = max(self.latest_at, self._last_at + since_s)
        self._last_at, self._last_up = event.at, event.up

    def _take(self, number: int, event: _Later) -> None:
        match event:
            case SessionHeads():
                for session, head in event.heads.items():
                    self._hear(session, self._mark(number, head))
            case SessionPart():
                self._begin_part(number, event)
            case SessionClosed():
                mark = self._mark(number, event.head)
                if told := self._hear(event.session, mark):
                    told.closed = mark
            case EpochEnded():
                self.is_ended = True
            case ApprovalAnswered() | EpochBegan() | PolicyInForce():
                pass
            case _:
                assert_never(event)

    def _open(self, number: int, event: SessionOpened) -> None:
        epoch, _, name = event.session.partition("-")
        is_name = epoch == str(self._epoch) and _NUMBER.fullmatch(name)
        if not is_name or event.session in self.sessions:
            return self._find(number, f"opens session {cut(event.session)!a}, which cannot be")
        self._keys = self._keys.after(self._reader.chain.count - 1, NO_MAC)
        self.sessions[event.session] = SessionHistory(event, self._keys.child_key(event.session))
        return None

    def _mark(self, line: int, head: ChainHead) -> ChainPosition:
        return ChainPosition(head, self.latest_at, line, self._clock_at)

    def _hear(self, session: str, mark: ChainPosition) -> SessionHistory | None:
        """Take down how far a session has come, unless that cannot be."""
        told = self.sessions.get(session)
        if told is None or told.closed:
            # Behind lines that are gone it may have been opened all the same.
            if told or not self._reader.was_lost:
                is_what = "over" if told else "not opened"
                self._find(mark.line, f"tells of session {cut(session)!a}, which was {is_what}")
            return None
        before = told.heads[-1].head if told.heads else ChainHead(0, "")
        is_same = mark.head.count == before.count
        if mark.head.count < before.count or (is_same and before.count and mark.head != before):
            what = f"of session {session} tells less, or another thing, than was told before"
            self._find(mark.line, what)
            return None
        told.heads.append(mark)
        return told

    def _begin_part(self, number: int, event: SessionPart) -> None:
        told = self._hear(event.session, self._mark(number, event.head))
        if told is None:
            return
        begun = told.parts[-1].head.count if told.parts else 0
        is_next = event.part == len(told.parts) + 2 <= _MAX_PARTS
        if is_next and event.head.count - begun <= _MAX_IN_PART:
            told.parts.append(told.heads[-1])
        else:
            self._find(number, f"begins file {event.part} of {event.session}, which cannot be")

    def _find(self, line: int, what: str) -> None:
        self._report.find(self._file, line, what)

    def _remark(self, line: int, what: str) -> None:
        self._report.remark(self._file, line, what)
