"""Audit of `mcpwrap run`, a hash chain in the agent's own folder.

It has the format of the gate's audit, and `mcpwrap audit --user` reads it. The agent has the key
too: the audit shows the server's actions, and that no other account changed it; against the agent
it proves nothing.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from mcpwrap import __version__
from mcpwrap.as_agent.run import directories
from mcpwrap.core.audit.hash_chain import KEY_BYTES, Chain
from mcpwrap.core.audit.params import ParamsEncoder
from mcpwrap.core.audit.records import (
    ApprovalAnswered,
    ApprovalRuleChanged,
    Keys,
    folder_of,
    start_of,
)
from mcpwrap.core.policy import rules
from mcpwrap.core.policy.rules import Policy
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import root_files
from mcpwrap.linux.process.shared_memory import SharedCounters
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.session.audit_log.chained_file import ChainedFile
from mcpwrap.session.audit_log.master_chain import AuditedSession, MasterChain
from mcpwrap.session.audit_log.recorder import RecordedSession, Recorder

KEYS = "keys.json"


class UserAuditLog:
    """Audit of one session: its records, and the chain above them, which any thread may extend."""

    recorder: Recorder  # of the relay alone

    def __init__(self, ledger: MasterChain) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()

    def next_part(self, entry: AuditedSession) -> int | None:
        """Return the next file of the session; None if it cannot be made."""
        with self._lock, suppress(OSError):
            return self._ledger.next_part(entry)
        return None

    def answered(self, answer: ApprovalAnswered) -> bool:
        """Record the answer to an approval question; return whether it is recorded."""
        return self._is_written(lambda: self._ledger.answered(answer))

    def rule_changed(self, changed: ApprovalRuleChanged) -> bool:
        """Record a change of an approval rule; return whether it is recorded."""
        return self._is_written(lambda: self._ledger.rule_changed(changed))

    def policy(self, digest: str) -> bool:
        """Record that another policy is in force; return whether it is recorded."""
        return self._is_written(lambda: self._ledger.policy(digest))

    def _is_written(self, write: Callable[[], None]) -> bool:
        with self._lock:
            try:
                write()
            except OSError as error:
                log_line(f"the audit cannot be written: {error.strerror}")
                return False
        return True


@contextmanager
def session(folder: Path, name: str, policy: Policy) -> Iterator[UserAuditLog]:
    """Record a session in the audit, and its end at the end of the block.

    Raises:
        McpwrapError: the audit cannot be written.
    """
    directories.make(folder)
    tally = SharedCounters()
    try:
        keys, ledger = _begun(folder)
        digest = rules.digest(policy)
        ledger.policy(digest)
        entry, key, fd = ledger.open(name, os.getuid(), os.getpid(), tally)
    except (OSError, msgspec.MsgspecError) as error:
        raise McpwrapError(
            f"the audit cannot be written: {error}; nothing was started",
            where=str(folder),
            fix="free some disk space, or move the folder away to start a new audit",
            code="E-RUN-AUDIT",
        ) from error
    start = start_of(keys.root_key, keys.epochs)
    log = UserAuditLog(ledger)
    log.recorder = Recorder(
        RecordedSession(entry.session, name, os.getuid()),
        ChainedFile(fd, Chain(key)),
        ParamsEncoder("plain", start.digest_key, start.box),
        tally,
        lambda: log.next_part(entry),
    )
    log.recorder.policy = digest
    try:
        yield log
    finally:
        with suppress(OSError):  # only the record of the end is lost
            ledger.close(entry)
            ledger.end()


def _begun(folder: Path) -> tuple[Keys, MasterChain]:
    """Begin an epoch of this user, with a number that no other process uses."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        before = _keys(folder)
        keys = before
        if before.is_begun or (folder / folder_of(before.epochs)).exists():
            keys = replace(before, epochs=before.epochs + 1, is_begun=False)
        _write(folder, keys)
        ledger = MasterChain(folder, start_of(keys.root_key, keys.epochs), __version__)
        _write(folder, replace(keys, is_begun=True))
    finally:
        os.close(fd)
    return keys, ledger


def _keys(folder: Path) -> Keys:
    try:
        return msgspec.json.decode((folder / KEYS).read_bytes(), type=Keys)
    except FileNotFoundError:
        return Keys(root_key=os.urandom(KEY_BYTES), epochs=0)


def _write(folder: Path, keys: Keys) -> None:
    root_files.replace(str(folder / KEYS), msgspec.json.encode(keys).decode(), mode=0o600)
