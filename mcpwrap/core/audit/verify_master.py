"""Verification of the master chain of one epoch, and of its entries on each session."""

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
    ApprovalRuleChanged,
    ChainHead,
    EpochBegan,
    EpochEnded,
    MasterEvent,
    PinsChanged,
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
    | ApprovalRuleChanged
    | EpochBegan
    | PolicyInForce
    | SessionHeads
    | SessionPart
    | SessionClosed
    | EpochEnded
)
# The longest time from a record to its anchor: the gate writes an anchor every 10 s.
_MAX_UNANCHORED_S = 60.0
_MAX_BACK_S = 5.0  # a clock that is corrected by less gets no remark
_NUMBER = re.compile(rf"[0-9]{{1,{MAX_NUMBER_DIGITS}}}")
_MAX_PARTS = 10**MAX_PART_DIGITS - 1
_MAX_IN_PART = MAX_PART_BYTES // 64  # every record is longer than that


@dataclass(frozen=True, slots=True)
class ChainPosition:
    """Chain head of a session at one time, and the line of the master chain that records it."""

    head: ChainHead
    at: float
    line: int
    latest_at: float  # upper bound of the time, from the previous record's time and the uptime


@dataclass(slots=True)
class SessionHistory:
    """Entries of the master chain on one session."""

    opened: SessionOpened
    key: bytes | bytearray  # of its first record
    heads: list[ChainPosition] = field(default_factory=list)  # oldest first
    parts: list[ChainPosition] = field(
        default_factory=list
    )  # where the second and later files begin
    closed: ChainPosition | None = None


class MasterChainCheck:
    """Verifier of the master chain of one epoch."""

    def __init__(self, epoch: int, key: bytes | bytearray, report: AuditReport) -> None:
        self.sessions: dict[str, SessionHistory] = {}
        self.pins: list[tuple[int, PinsChanged]] = []  # with the numbers of their lines
        # The latest time of all records so far, and not of the last one: an attacker who has the
        # current key can write any time, and could make earlier records seem too old to be missed.
        self.latest_at = 0.0
        self.is_ended = False
        self._anchored = 0  # records, up to the last with an anchor in the journal
        self._since: tuple[MasterEvent, MasterEvent] | None = (
            None  # first and last of the records after that
        )
        self._last_at = self._last_up = 0.0
        self._clock_at = 0.0  # see `ChainPosition.latest_at`
        self._epoch = epoch
        self._file = ""
        self._report = report
        self._reader: ChainReader[MasterEvent] = ChainReader(Chain(key), decode_event, report)
        self._keys = Chain(key)  # advances from opening to opening, for the sessions' keys

    def read(self, file: str, lines: Iterable[bytes], journal: JournalAnchors) -> None:
        """Verify all lines."""
        self._file = file
        events = self._reader.records(file, lines)
        first = list(islice(events, 1))
        macs = mac_by_count(journal.anchors, first[0][1] if first else None, file, self._report)
        for number, event in joined(first, events):
            self._check_order(number, event)
            if isinstance(event, SessionOpened):
                self._open(number, event)
            elif isinstance(event, PinsChanged):
                self.pins.append((number, event))
            else:
                self._take(number, event)
            self._compare(number, event, macs)
        if not self._reader.is_lost:
            self._check_end(max(macs, default=0), journal.read_at)

    @property
    def was_lost(self) -> bool:
        """Return whether records may be missing."""
        return self._reader.was_lost

    def _compare(self, number: int, event: MasterEvent, macs: dict[int, str]) -> None:
        chain = self._reader.chain
        mac = macs.get(chain.count)
        if mac == chain.mac.hex():
            self._anchored, self._since = chain.count, None
            return
        self._since = (self._since[0] if self._since else event, event)
        if mac is not None:
            self._find(number, "differs from the anchor in the journal")

    def _check_end(self, anchored: int, now: float | None) -> None:
        count = self._reader.chain.count
        if anchored > count:
            self._find(0, f"ends after {count} records; the journal has an anchor for {anchored}")
        elif not count:
            self._remark(0, "this run of the gate recorded nothing")
        elif self.is_ended:
            pass  # the end record is there, and so no record is missing
        elif not anchored:
            what = "the journal has no anchor: the removal of the last lines would not be detected"
            self._remark(0, what)
        elif self._unanchored_s(now) > _MAX_UNANCHORED_S:
            # journald drops messages over its rate limit, and does not report that to the sender.
            what = f"no anchor in the journal after record {self._anchored - 1}"
            self._remark(0, f"{what}: the removal of later records would not be detected")

    def _unanchored_s(self, now: float | None) -> float:
        """Return for how long, at least, records were written without an anchor."""
        if self._since is None:
            return 0.0
        first, last = self._since
        # By the clock that cannot be set, if it was recorded.
        since_s = last.up - first.up if first.up else last.at - first.at
        return since_s if now is None else max(since_s, now - first.at)

    def _check_order(self, number: int, event: MasterEvent) -> None:
        if self.is_ended:
            self._find(number, "comes after the end of the gate's run")
        is_first = self._reader.chain.count == 1
        if isinstance(event, EpochBegan) != is_first:
            self._find(number, "a run begins with its start record, and has no other")
        if isinstance(event, EpochBegan) and event.epoch != self._epoch:
            self._find(number, f"belongs to run {event.epoch}")
        if event.at < self._last_at - _MAX_BACK_S:
            back_s = self._last_at - event.at
            self._remark(number, f"the clock was set back by {back_s:.0f} s")
        since_s = max(0.0, event.up - self._last_up)
        self.latest_at = max(self.latest_at, event.at)
        self._clock_at = max(self.latest_at, self._last_at + since_s)
        self._last_at, self._last_up = event.at, event.up

    def _take(self, number: int, event: _Later) -> None:
        match event:
            case SessionHeads():
                for session, head in event.heads.items():
                    self._note_head(session, self._mark(number, head))
            case SessionPart():
                self._begin_part(number, event)
            case SessionClosed():
                mark = self._mark(number, event.head)
                if history := self._note_head(event.session, mark):
                    history.closed = mark
            case EpochEnded():
                self.is_ended = True
            case ApprovalAnswered() | ApprovalRuleChanged() | EpochBegan() | PolicyInForce():
                pass
            case _:
                assert_never(event)

    def _open(self, number: int, event: SessionOpened) -> None:
        epoch, _, name = event.session.partition("-")
        is_name = epoch == str(self._epoch) and _NUMBER.fullmatch(name)
        if not is_name or event.session in self.sessions:
            return self._find(
                number, f"opens session {cut(event.session)!a}: invalid or repeated name"
            )
        self._keys = self._keys.after(self._reader.chain.count - 1, NO_MAC)
        self.sessions[event.session] = SessionHistory(event, self._keys.child_key(event.session))
        return None

    def _mark(self, line: int, head: ChainHead) -> ChainPosition:
        return ChainPosition(head, self.latest_at, line, self._clock_at)

    def _note_head(self, session: str, mark: ChainPosition) -> SessionHistory | None:
        """Store a session's head, unless it is impossible."""
        history = self.sessions.get(session)
        if history is None or history.closed:
            # After missing lines: the session may have been opened in one of these.
            if history or not self._reader.was_lost:
                state = "is closed" if history else "was not opened"
                self._find(mark.line, f"has the head of session {cut(session)!a}, which {state}")
            return None
        before = history.heads[-1].head if history.heads else ChainHead(0, "")
        is_same = mark.head.count == before.count
        if mark.head.count < before.count or (is_same and before.count and mark.head != before):
            what = f"has a head of session {session} that contradicts an earlier one"
            self._find(mark.line, what)
            return None
        history.heads.append(mark)
        return history

    def _begin_part(self, number: int, event: SessionPart) -> None:
        history = self._note_head(event.session, self._mark(number, event.head))
        if history is None:
            return
        begun = history.parts[-1].head.count if history.parts else 0
        is_next = event.part == len(history.parts) + 2 <= _MAX_PARTS
        if is_next and event.head.count - begun <= _MAX_IN_PART:
            history.parts.append(history.heads[-1])
        else:
            what = f"begins file {event.part} of {event.session}: impossible number or record count"
            self._find(number, what)

    def _find(self, line: int, what: str) -> None:
        self._report.find(self._file, line, what)

    def _remark(self, line: int, what: str) -> None:
        self._report.remark(self._file, line, what)
