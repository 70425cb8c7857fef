"""Master hash chain of an epoch: its sessions, and the heads of their own chains."""

import errno
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from mcpwrap.core.audit import records
from mcpwrap.core.audit.hash_chain import Chain
from mcpwrap.core.audit.records import (
    MAX_PART_BYTES,
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
    Start,
)
from mcpwrap.linux.process.shared_memory import SharedCounters
from mcpwrap.linux.process.zeroize import zeroize
from mcpwrap.session.audit_log.chained_file import ChainedFile

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_MODE, _FOLDER_MODE = 0o640, 0o750


@dataclass(slots=True)
class AuditedSession:
    """Session that is opened in the chain, and not yet closed."""

    session: str
    tally: SharedCounters
    part: int = 1
    told: int = 0  # record count of the last head in the chain
    is_over: bool = False

    def head(self) -> ChainHead:
        """Return the current head of the session's chain."""
        count, mac = self.tally.head()
        return ChainHead(count, mac.hex())


class MasterChain:
    """Writer of the master chain, for one process only.

    An event that cannot be written raises OSError, and is not carried out.
    """

    def __init__(self, folder: Path, start: Start, version: str) -> None:
        """Begin an epoch, in a folder of its own below `folder`; the umask decides who can read it.

        Raises:
            OSError: the folder or the first record cannot be written.
        """
        self._folder = folder / records.folder_of(start.epoch)
        self.epoch = start.epoch
        self._sessions = 0
        self._open: dict[str, AuditedSession] = {}
        self._folder.mkdir(_FOLDER_MODE)
        try:
            self._file = ChainedFile(self._create(records.MASTER), Chain(start.key, wipe=zeroize))
            start.key[:] = bytes(len(start.key))
            began = EpochBegan(
                epoch=self.epoch, boot=start.boot.hex(), version=version, pid=os.getpid()
            )
            self._write(began)
        except OSError:  # leave nothing behind, so that the epoch can be begun again
            (self._folder / records.MASTER).unlink(missing_ok=True)
            self._folder.rmdir()
            raise

    @property
    def path(self) -> Path:
        """Return the file of the chain."""
        return self._folder / records.MASTER

    @property
    def count(self) -> int:
        """Return the number of records of the chain."""
        return self._file.chain.count

    @property
    def mac(self) -> str:
        """Return the MAC of the last record."""
        return self._file.chain.mac.hex()

    def open(
        self, server: str, uid: int, pid: int, tally: SharedCounters
    ) -> tuple[AuditedSession, bytearray, int]:
        """Open a session; return it, the key of its chain, and its file, open for appending.

        Raises:
            OSError: the session cannot be recorded.
        """
        self._sessions += 1
        session = f"{self.epoch}-{self._sessions}"
        key = self._file.chain.child_key(session)
        # In this order: verification reports a file of a session that is not in the chain.
        self._write(SessionOpened(session=session, server=server, uid=uid, pid=pid))
        self._open[session] = entry = AuditedSession(session, tally)
        try:
            return entry, key, self._create(records.part_file(session, 1))
        except OSError:
            self.close(entry)
            raise

    def is_full(self, entry: AuditedSession) -> bool:
        """Return whether a session's file is full, by its size on disk, or missing."""
        path = self._path(entry)
        return not path.exists() or path.stat().st_size >= MAX_PART_BYTES

    def next_part(self, entry: AuditedSession) -> int:
        """Return the next file of a session.

        Raises:
            OSError: the file cannot be created or recorded.
        """
        if self._path(entry).exists():  # else it is recorded already, and could not be created
            self._write(SessionPart(session=entry.session, part=entry.part + 1, head=entry.head()))
            entry.part += 1
        return self._create(records.part_file(entry.session, entry.part))

    def policy(self, digest: str) -> None:
        """Record that another policy is in force.

        Raises:
            OSError: it cannot be written.
        """
        self._write(PolicyInForce(digest=digest))

    def answered(self, answered: ApprovalAnswered) -> None:
        """Record an answer to an approval question, or a refused attempt.

        Raises:
            OSError: it cannot be written.
        """
        self._write(answered)

    def pins_changed(self, changed: PinsChanged) -> None:
        """Record a change of the pins of a server.

        Raises:
            OSError: it cannot be written.
        """
        self._write(changed)

    def rule_changed(self, changed: ApprovalRuleChanged) -> None:
        """Record an approval rule that was saved, or is in force no more.

        Raises:
            OSError: it cannot be written.
        """
        self._write(changed)

    def close(self, entry: AuditedSession) -> None:
        """Record the end of a session; if that fails, `catch_up` retries."""
        entry.is_over = True
        with suppress(OSError):
            self._close(entry)

    def catch_up(self) -> bool:
        """Record the heads of all sessions; return whether an event was written.

        Raises:
            OSError: it cannot be written.
        """
        before = self.count
        for entry in [entry for entry in self._open.values() if entry.is_over]:
            self._close(entry)
        heads = {name: entry.head() for name, entry in self._open.items()}
        moved = {name: head for name, head in heads.items() if head.count > self._open[name].told}
        if moved:
            self._write(SessionHeads(heads=moved))
            for name, head in moved.items():
                self._open[name].told = head.count
        return self.count > before

    def end(self) -> None:
        """Record the end of this epoch and of all its sessions.

        Raises:
            OSError: it cannot be written.
        """
        for entry in self._open.values():
            entry.is_over = True
        self.catch_up()
        self._write(EpochEnded())

    def forget(self) -> None:
        """In a child: erase the key of the chain, and unmap other sessions' counters."""
        self._file.chain.forget()
        for entry in self._open.values():
            entry.tally.close()

    def _close(self, entry: AuditedSession) -> None:
        head = entry.head()
        self._write(SessionClosed(session=entry.session, head=head))
        del self._open[entry.session]
        entry.tally.close()
        # A session without a record leaves no file. By its size: a session can claim any count.
        with suppress(OSError):
            if not self._path(entry).stat().st_size:
                self._path(entry).unlink()

    def _path(self, entry: AuditedSession) -> Path:
        return self._folder / records.part_file(entry.session, entry.part)

    def _write(self, event: MasterEvent) -> None:
        now, up = time.time(), time.monotonic()
        stamped = replace(event, n=self.count, at=now, up=up, torn=self._file.torn)
        if not self._file.append(records.encode(stamped)):
            raise OSError(errno.ENOSPC, "the audit cannot be written", str(self._folder))

    def _create(self, name: str) -> int:
        return os.open(self._folder / name, _APPEND, _FILE_MODE)
