"""Authentication of approvers, by password or polkit, in a process of its own for each check.

The check of a password takes a tenth of a second and 64 MiB, and polkit asks a person; the
monitor must not block.
"""

import os
import pwd
import select
import signal
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import nacl.exceptions
import nacl.pwhash

from mcpwrap.core.approval.authorization import ApproverIdentity
from mcpwrap.core.wire import approver_passwords
from mcpwrap.errors import UsageError
from mcpwrap.linux import polkit
from mcpwrap.linux.process import signal_fd
from mcpwrap.linux.root_files import read_roots_own
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket.peer_credentials import Peer

APPROVERS = Path("/var/lib/mcpwrap/approvers.json")
MAX_AT_ONCE = 8
MAX_OF_UID = 2  # so that one account cannot delay the checks of others
MAX_FAILURES, FAILURES_WITHIN_S = 5, 300.0  # by account that connects, and account that it names
_MAX_KNOWN = 1024
_ARGON = nacl.pwhash.argon2id


class AuthResult(msgspec.Struct, frozen=True):
    """Result of an authentication: the account; or uid -1, and the reason."""

    uid: int = -1
    gids: tuple[int, ...] = ()
    why: str = ""

    @property
    def who(self) -> ApproverIdentity:
        """Return the account."""
        return ApproverIdentity(self.uid, frozenset(self.gids))


@dataclass(slots=True)
class _Job:
    pid: int
    key: tuple[int, str]
    then: Callable[[AuthResult], None]


@dataclass(slots=True)
class Authenticator:
    """Running checks by the descriptor that signals their end, and the limit on failures."""

    _jobs: dict[int, _Job] = field(default_factory=dict)
    _failed_at_s: dict[tuple[int, str], deque[float]] = field(default_factory=dict)

    def why_not(self, uid: int, user: str, now_s: float) -> str:
        """Return why a proof cannot be checked now; "" if it can."""
        of_uid = sum(job.key[0] == uid for job in self._jobs.values())
        if of_uid >= MAX_OF_UID or len(self._jobs) >= MAX_AT_ONCE:
            return "too many proofs are being checked"
        self._forget_old(now_s)
        if len(self._failed_at_s) >= _MAX_KNOWN:
            return "too many wrong proofs"
        failed = self._failed_at_s.get((uid, user))
        if failed and len(failed) == MAX_FAILURES and now_s - failed[0] < FAILURES_WITHIN_S:
            left_s = int(failed[0] + FAILURES_WITHIN_S - now_s) + 1
            return f"{MAX_FAILURES} wrong proofs: retry in {left_s} s"
        return ""

    def _forget_old(self, now_s: float) -> None:
        """Remove expired failures, and no others, so that new ones cannot displace recent ones."""
        for key, failed in list(self._failed_at_s.items()):
            if now_s - failed[-1] >= FAILURES_WITHIN_S:
                del self._failed_at_s[key]

    def start(
        self,
        key: tuple[int, str],
        check: Callable[[], AuthResult],
        then: Callable[[AuthResult], None],
    ) -> int:
        """Start a check in a process of its own; return a descriptor that is readable at its end.

        Raises:
            OSError: the process could not be made.
        """
        read_fd, write_fd = os.pipe2(os.O_CLOEXEC)
        try:
            pid = os.fork()
        except OSError:
            os.close(read_fd)
            os.close(write_fd)
            raise
        if pid == 0:
            _answer(check, write_fd)
        os.close(write_fd)
        self._jobs[read_fd] = _Job(pid, key, then)
        return read_fd

    def has(self, fd: int) -> bool:
        """Return whether a descriptor belongs to a check."""
        return fd in self._jobs

    @staticmethod
    def is_in(fd: int) -> bool:
        """Return whether a check has ended."""
        return bool(select.select([fd], [], [], 0)[0])

    def finish(self, fd: int, now_s: float) -> None:
        """Read the result of a check, close its descriptor, and call the continuation."""
        job = self._jobs.pop(fd)
        text = os.read(fd, 65_536)
        os.close(fd)
        try:
            proven = msgspec.json.decode(text, type=AuthResult)
        except msgspec.MsgspecError:
            proven = AuthResult(why="the check failed: see the journal of mcpwrap-gate")
        if proven.uid >= 0:
            self._failed_at_s.pop(job.key, None)
        else:
            failed = self._failed_at_s.pop(job.key, None) or deque(maxlen=MAX_FAILURES)
            failed.append(now_s)
            self._failed_at_s[job.key] = failed
        job.then(proven)

    def end_all(self) -> None:
        """Kill the running checks."""
        for job in self._jobs.values():
            with suppress(ProcessLookupError):
                os.kill(job.pid, signal.SIGKILL)


def _answer(check: Callable[[], AuthResult], write_fd: int) -> None:
    """In the new process: close the monitor's descriptors, check, write the result, and exit."""
    try:
        signal_fd.restore_signals()
        os.dup2(write_fd, 3)
        os.closerange(4, 1_048_576)
        os.write(3, msgspec.json.encode(check()))
    except BaseException:  # noqa: BLE001 - the monitor's code must not continue in this process
        log_line(f"a bug in mcpwrap-gate: {traceback.format_exc()}")
    finally:
        os._exit(0)


def by_password(user: str, password: bytes) -> AuthResult:
    """Check a password. It takes as long for an account without one."""
    try:
        known = approver_passwords.decode(read_roots_own(str(APPROVERS))).by_user
    except FileNotFoundError:
        known = {}
    except UsageError as error:
        return AuthResult(why=f"{error.where}: {error.problem}")
    approver = known.get(user)
    if approver is None:
        _ARGON.str(password, _ARGON.OPSLIMIT_INTERACTIVE, _ARGON.MEMLIMIT_INTERACTIVE)
        return AuthResult(why="wrong password")
    try:
        nacl.pwhash.verify(approver.hash.encode(), password)
    except nacl.exceptions.InvalidkeyError:
        return AuthResult(why="wrong password")
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        return AuthResult(why="the account does not exist any more")
    if account.pw_uid != approver.uid:
        return AuthResult(why="the password is of an earlier account of that name")
    return AuthResult(account.pw_uid, tuple(os.getgrouplist(user, account.pw_gid)))


def by_polkit(peer: Peer, process_start: int, details: Mapping[str, str]) -> AuthResult:
    """Ask polkit to authenticate the user of a process; its dialog shows `details`."""
    if polkit.is_authorised(peer.pid, process_start, peer.uid, details):
        return AuthResult(peer.uid, tuple(peer.gids))
    return AuthResult(why="polkit did not authorize it")


def account_of(uid: int) -> str:
    """Return the name of an account; "" if it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""
