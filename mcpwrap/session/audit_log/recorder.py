"""Recorder of one session: writes each decision before it is carried out."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from mcpwrap.core.audit.params import ParamsEncoder
from mcpwrap.core.audit.records import MAX_PART_BYTES, Record, cut, encode
from mcpwrap.core.gate.ports import AuditedDecision
from mcpwrap.core.log_rate_limit import LogRateLimit
from mcpwrap.core.text.uris import bare
from mcpwrap.linux.process.shared_memory import SharedCounters
from mcpwrap.session.audit_log.chained_file import ChainedFile

# Refused messages that either side can send in any number; unlimited, they would fill the disk.
_NOISE = frozenset({"malformed", "unknown", "dropped", "limited"})
_MAX_NOISE_PER_S = 20


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """Identity of a session in its records: session name, server, UID, and the hub's session."""

    session: str
    server: str
    uid: int
    via: str = ""  # the session of a hub for which it was opened


class Recorder:
    """Recorder for one thread at a time. `policy` is the digest of the policy in force."""

    def __init__(
        self,
        about: RecordedSession,
        file: ChainedFile,
        encoder: ParamsEncoder,
        tally: SharedCounters,
        next_part: Callable[[], int | None],
    ) -> None:
        """`next_part` returns the next file to write to, once a part is full."""
        self.policy = ""
        self.project = ""  # that the server sees
        self.about = about
        self._file = file
        self._encoder = encoder
        self._tally = tally
        self._next_part = next_part
        self._unrecorded = self._left_out = 0
        self._quota = LogRateLimit(_MAX_NOISE_PER_S)
        self._arrived_ns = 0

    def arrived(self) -> None:
        """Note the arrival time of the messages that are judged next."""
        self._arrived_ns = time.monotonic_ns()

    def write(self, decided: AuditedDecision) -> bool:
        """Record a decision; return whether it was written: if not, it may not be carried out."""
        us = (time.monotonic_ns() - self._arrived_ns) // 1000
        if decided.decision in _NOISE and not self._quota.admits(time.monotonic()):
            self._tally.count(decided.decision, us)
            return True  # the message is refused, and the next record has the count of these
        if not self._has_room() or not self._file.append(encode(self._record(decided, us))):
            self._unrecorded += 1
            self._tally.count("unrecorded", us)
            return False
        self._unrecorded = self._left_out = 0
        self._tally.wrote(self._file.chain.count, self._file.chain.mac)
        self._tally.count(decided.decision, us)
        return True

    def _has_room(self) -> bool:
        if self._file.size < MAX_PART_BYTES or self._file.torn:
            return True
        fd = self._next_part()
        if fd is None:
            return False
        self._file.go_on_in(fd)
        return True

    def _record(self, decided: AuditedDecision, us: int) -> Record:
        stored = self._encoder.encode(decided.params)
        self._left_out += self._quota.take_left_out()
        return Record(
            n=self._file.chain.count,
            at=time.time(),
            server=self.about.server,
            uid=self.about.uid,
            session=self.about.session,
            via=self.about.via,
            project=self.project,
            sender=decided.sender,
            decision=decided.decision,
            method=cut(decided.method),
            target=cut(bare(decided.target)),
            id=decided.id,
            era=decided.era,
            rule=decided.rule,
            why=cut(decided.why),
            watched=decided.watched,
            policy=self.policy,
            size=decided.size,
            approval=decided.approval,
            shown=decided.shown,
            by=cut(decided.by),
            code=decided.code,
            run=decided.run,
            us=us,
            hash=stored.hash,
            sealed=stored.sealed,
            plain=stored.plain,
            torn=self._file.torn,
            unrecorded=self._unrecorded,
            left_out=self._left_out,
        )
