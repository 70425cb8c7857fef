"""Audit writer of the monitor: sessions of this run in the hash chain, anchors in the journal."""

import os
from contextlib import suppress
from pathlib import Path

from mcpwrap import __version__
from mcpwrap.as_gate.ipc.packets import AuditFileHandle, ChannelError
from mcpwrap.core.audit import records
from mcpwrap.core.audit.records import ANCHOR_ID, APPROVAL_ID, ApprovalAnswered
from mcpwrap.linux.process.shared_memory import SharedCounters
from mcpwrap.linux.systemd.journal import Journal
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from mcpwrap.session.audit_log.master_chain import AuditedSession, MasterChain

START = Path("/run/mcpwrap/audit/start")
FOLDER = Path("/var/log/mcpwrap/audit")
_ANCHOR_EVERY_S = 10.0  # what is cut off the end of a file within that time, nobody sees


class AuditWriter:
    """Audit writer. A caller refuses what it cannot write, and the journal is told of it once."""

    def __init__(self) -> None:
        """Begin an epoch.

        Raises:
            OSError, ValueError: root left no start, or nothing can be written.
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
        """Write down that a session begins, and leave its key in `tally`; None if that failed."""
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
        """Return the file in which a session goes on; None if there can be none.

        Raises:
            ChannelError: there is room in the one it has.
        """
        try:
            if not self._ledger.is_full(entry):
                raise ChannelError("its part of the audit is not full")
            return self._ledger.next_part(entry)
        except OSError as error:
            self._fail(error)
            return None

    def close(self, tally: SharedCounters, entry: AuditedSession | None) -> None:
        """Write down that a session is over, now or when there is room for it."""
        if entry is None:
            tally.close()
        else:
            self._ledger.close(entry)

    def policy(self, digest: str) -> None:
        """Write down that another policy is in force."""
        with suppress(OSError):  # it is in each record of a session too
            self._ledger.policy(digest)

    def answered(self, answered: ApprovalAnswered) -> bool:
        """Write down what somebody answered, and tell the journal; say whether it is written."""
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

    def catch_up(self, now_s: float) -> None:
        """Write down how far sessions have come, and leave an anchor, if it is time to."""
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
        """Return after how long `catch_up` is to be called again."""
        return max(0.0, self._anchored_at_s + _ANCHOR_EVERY_S - now_s)

    def end(self) -> None:
        """Write down that the gate is stopped."""
        try:
            self._ledger.end()
        except OSError as error:
            self._fail(error)
        self._anchor()

    def forget(self) -> None:
        """In a child: keep nothing by which the chain could go on."""
        self._ledger.forget()

    def _anchor(self) -> None:
        """Leave in the journal, which is root's, how far the chain has come."""
        ledger = self._ledger
        is_taken = self._journal.write(
            f"audit: epoch {ledger.epoch} has {ledger.count} records, the last with {ledger.mac}",
            # Of all that this unit writes nothing else is of it: journald limits each on its own.
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
            log_line(f"the audit cannot be written, so calls are refused: {error.strerror}")


def _read(path: Path) -> bytearray:
    """Return a file, of which no other copy is in the memory of this process."""
    with path.open("rb", buffering=0) as file:
        content = bytearray(os.fstat(file.fileno()).st_size)
        file.readinto(content)
        return content
