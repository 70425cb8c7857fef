"""Audit writer of the monitor: master chain of this run, anchors in the journal."""

import os
from contextlib import suppress
from pathlib import Path

from mcpwrap import __version__
from mcpwrap.as_gate.ipc.packets import AuditFileHandle, ChannelError
from mcpwrap.core.audit import records
from mcpwrap.core.audit.approval_rules_format import rule_line
from mcpwrap.core.audit.pins_format import pins_line
from mcpwrap.core.audit.records import (
    ANCHOR_ID,
    APPROVAL_ID,
    PINS_ID,
    ApprovalAnswered,
    ApprovalRuleChanged,
    PinsChanged,
)
from mcpwrap.linux.process.shared_memory import SharedCounters
from mcpwrap.linux.systemd.journal import Journal
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from mcpwrap.session.audit_log.master_chain import AuditedSession, MasterChain

START = Path("/run/mcpwrap/audit/start")
FOLDER = Path("/var/log/mcpwrap/audit")
_ANCHOR_EVERY_S = 10.0  # lines that are removed from a file's end within that time go unnoticed


class AuditWriter:
    """Audit writer. Callers refuse what it cannot write; the first failure is logged."""

    def __init__(self) -> None:
        """Begin an epoch.

        Raises:
            OSError, ValueError: root wrote no valid start file, or the epoch cannot be written.
        """
        start = records.decode_start(_read(START))
        self.digest_key, self.box = start.digest_key, start.box
        self._ledger = MasterChain(FOLDER, start, __version__)
        self._journal = Journal()
        self._is_failing = False
        self._anchored_at_s = 0.0
        self._anchored = 0
        self._anchor()

    def open(
        self, server: str, who: Peer, tally: SharedCounters
    ) -> tuple[AuditedSession, AuditFileHandle] | None:
        """Record a new session, and put its key into `tally`; return None if that failed."""
        try:
            entry, key, fd = self._ledger.open(server, who.uid, who.pid, tally)
        except OSError as error:
            self._fail(error)
            return None
        self._is_failing = False
        tally.hand_over(key)
        key[:] = bytes(len(key))
        return entry, AuditFileHandle(entry.session, fd)

    def next_part(self, entry: AuditedSession) -> int | None:
        """Return the next file of a session; None if there can be none.

        Raises:
            ChannelError: its current file is not full.
        """
        try:
            if not self._ledger.is_full(entry):
                raise ChannelError("its part of the audit is not full")
            return self._ledger.next_part(entry)
        except OSError as error:
            self._fail(error)
            return None

    def close(self, tally: SharedCounters, entry: AuditedSession | None) -> None:
        """Record the end of a session, now or when the disk has room."""
        if entry is None:
            tally.close()
        else:
            self._ledger.close(entry)

    def policy(self, digest: str) -> None:
        """Record that another policy is in force."""
        with suppress(OSError):  # each record of a session has its digest too
            self._ledger.policy(digest)

    def answered(self, answered: ApprovalAnswered) -> bool:
        """Record an approval answer, and log it to the journal; return whether it was recorded."""
        try:
            self._ledger.answered(answered)
        except OSError as error:
            self._fail(error)
            return False
        who = f"uid {answered.uid}" + (f" as {answered.user!r}" if answered.user else "")
        why = f": {answered.why}" if answered.why else ""
        self._journal.write(
            f"approval {answered.approval} {answered.outcome} by {who}, {answered.channel}{why}",
            MESSAGE_ID=APPROVAL_ID,
            MCPWRAP_SERVER=answered.server,
            MCPWRAP_AGENT=str(answered.agent_uid),
            MCPWRAP_TOOL=answered.target,
            MCPWRAP_DECISION=answered.outcome,
            MCPWRAP_APPROVAL=answered.approval,
        )
        return True

    def pins_changed(self, changed: PinsChanged) -> bool:
        """Record a change of pins, and log it to the journal; return whether it was recorded."""
        try:
            self._ledger.pins_changed(changed)
        except OSError as error:
            self._fail(error)
            return False
        if changed.before != changed.after:
            self._journal.write(
                pins_line(changed),
                MESSAGE_ID=PINS_ID,
                MCPWRAP_SERVER=changed.server,
                MCPWRAP_DECISION=changed.outcome,
                MCPWRAP_APPROVAL=changed.approval,
            )
        return True

    def rule_changed(self, changed: ApprovalRuleChanged) -> bool:
        """Record a change of an approval rule, and log it; return whether it was recorded."""
        try:
            self._ledger.rule_changed(changed)
        except OSError as error:
            self._fail(error)
            return False
        self._journal.write(
            rule_line(changed),
            MESSAGE_ID=APPROVAL_ID,
            MCPWRAP_SERVER=changed.server,
            MCPWRAP_AGENT=str(changed.agent_uid),
            MCPWRAP_TOOL=changed.target,
            MCPWRAP_DECISION=f"rule {changed.outcome}",
            MCPWRAP_APPROVAL=changed.rule,
        )
        return True

    @property
    def path(self) -> str:
        """Return the file of the master chain."""
        return str(self._ledger.path)

    def catch_up(self, now_s: float) -> None:
        """Record the heads of sessions, and write an anchor, if they are due."""
        if now_s - self._anchored_at_s < _ANCHOR_EVERY_S:
            return
        self._anchored_at_s = now_s
        try:
            self._ledger.catch_up()
            self._is_failing = False
        except OSError as error:
            self._fail(error)
        if self._ledger.count > self._anchored:
            self._anchor()

    def due_in_s(self, now_s: float) -> float:
        """Return the time until `catch_up` must be called."""
        return max(0.0, self._anchored_at_s + _ANCHOR_EVERY_S - now_s)

    def end(self) -> None:
        """Record the stop of the gate."""
        try:
            self._ledger.end()
        except OSError as error:
            self._fail(error)
        self._anchor()

    def forget(self) -> None:
        """In a child: erase the keys by which the chain could be continued."""
        self._ledger.forget()

    def _anchor(self) -> None:
        """Write the head of the chain to the journal, which belongs to root."""
        ledger = self._ledger
        is_taken = self._journal.write(
            f"audit: epoch {ledger.epoch} has {ledger.count} records, the last with {ledger.mac}",
            # No other message of this unit has this priority: journald limits each one separately.
            PRIORITY="7",
            MESSAGE_ID=ANCHOR_ID,
            MCPWRAP_EPOCH=str(ledger.epoch),
            MCPWRAP_COUNT=str(ledger.count),
            MCPWRAP_MAC=ledger.mac,
        )
        if is_taken:
            self._anchored = ledger.count

    def _fail(self, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            why = f"{error.strerror} [E-AUDIT-NOT-WRITABLE]"
            log_line(f"the audit cannot be written, so calls are refused: {why}")


def _read(path: Path) -> bytearray:
    """Return the content of a file, without another copy in this process's memory."""
    with path.open("rb", buffering=0) as file:
        content = bytearray(os.fstat(file.fileno()).st_size)
        file.readinto(content)
        return content
