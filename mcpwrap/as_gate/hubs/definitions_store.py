"""Last definitions of hubs' members, by agent: `/var/lib/mcpwrap/definitions/UID/MEMBER.json`.

A session's process writes them to a memfd of the monitor, which seals it. The monitor must not wait
for a disk, so a process of its own writes each file. The next version of a file waits at least a
second, and only the latest is written.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from mcpwrap.as_gate.ipc.session_pages import SessionPages
from mcpwrap.as_gate.state import forked_process
from mcpwrap.core.log_rate_limit import LogRateLimit
from mcpwrap.core.wire.hub import hub_catalogue
from mcpwrap.core.wire.hub.hub_catalogue import MAX_DEFINITIONS_BYTES, Definitions
from mcpwrap.core.wire.server_files import AccessList, AccessRule
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket import memfd

FOLDER = Path(hub_catalogue.DEFINITIONS)
MAX_WRITERS = 4
MAX_WAITING = 64  # versions of up to 4 MiB each
EVERY_S = 1.0  # for each file
_TEMPORARY = "."  # a name that begins so is not a server's
_PRUNE = (-1, "")  # key of the process that removes files
_NULL_FD = 0  # standard input
_FAILED = "definitions of hubs' members cannot be written"
Key = tuple[int, str]  # the agent's UID, and the member


def read(uid: int, member: str) -> Definitions | None:
    """Return the last definitions of a member for an agent; None if there are none to be read."""
    try:
        with _file(uid, member).open("rb") as file:
            return hub_catalogue.decode_definitions(file.read(MAX_DEFINITIONS_BYTES + 1))
    except (OSError, msgspec.MsgspecError):
        return None


class DefinitionsWriter:
    """Writer of the files, in the monitor. Times are monotonic, in seconds."""

    def __init__(self) -> None:
        self.pages = SessionPages("definitions")
        self._waiting: dict[Key, int] = {}  # the latest version, as a sealed memfd
        self._key_by_pid: dict[int, Key] = {}
        self._written_at_s: dict[Key, float] = {}
        self._prune_by: AccessList | None = None
        self._quota = LogRateLimit(1)

    def take(self, session: int, key: Key) -> None:
        """Take the page of a session, as the latest version of a file.

        Raises:
            ChannelError: the session has no page.
            OSError: the session has the page mapped for writing.
        """
        fd = self.pages.take(session)
        if why := self._why_not_kept(fd, key):
            os.close(fd)
            self._log(f"uid {key[0]}: definitions of {key[1]!r} are not kept: {why}")
            return
        before, self._waiting[key] = self._waiting.get(key), fd
        if before is not None:
            os.close(before)

    def prune(self, admissions: AccessList) -> None:
        """Have the files of members and agents removed that the access list has not any more."""
        self._prune_by = admissions

    def catch_up(self, now_s: float) -> None:
        """Start the processes that are due."""
        if self._prune_by is not None:
            if not self._key_by_pid:
                work = partial(_prune, FOLDER, self._prune_by)
                self._prune_by = None
                self._start(_PRUNE, work)
            return  # no file is written while others are removed
        for key in [key for key, at_s in self._written_at_s.items() if now_s - at_s >= EVERY_S]:
            del self._written_at_s[key]
        for key in self._ready():
            fd = self._waiting.pop(key)
            self._written_at_s[key] = now_s
            self._start(key, partial(_write, _file(*key)), fd)
            os.close(fd)

    def due_in_s(self, now_s: float) -> float | None:
        """Return the time until `catch_up` has work to do; None if SIGCHLD comes first."""
        if self._prune_by is not None:
            return None if self._key_by_pid else 0.0
        if self._ready():
            return 0.0
        if not self._free_writers():
            return None
        times = [self._written_at_s[key] for key in self._waiting if key in self._written_at_s]
        return max(0.0, min(times) + EVERY_S - now_s) if times else None

    def ended(self, pid: int) -> None:
        """Note the end of a process; that of another kind is ignored."""
        self._key_by_pid.pop(pid, None)

    def _ready(self) -> list[Key]:
        """Return the files to be written now."""
        busy = {*self._written_at_s, *self._key_by_pid.values()}
        return [key for key in self._waiting if key not in busy][: self._free_writers()]

    def _free_writers(self) -> int:
        is_pruning = _PRUNE in self._key_by_pid.values()
        return 0 if is_pruning else MAX_WRITERS - len(self._key_by_pid)

    def _why_not_kept(self, fd: int, key: Key) -> str:
        size = os.fstat(fd).st_size
        if size > MAX_DEFINITIONS_BYTES:
            return f"they have {size} bytes, and {MAX_DEFINITIONS_BYTES} are the most"
        if key not in self._waiting and len(self._waiting) >= MAX_WAITING:
            return f"{MAX_WAITING} others wait to be written"
        return ""

    def _start(self, key: Key, work: Callable[[], None], fd: int = _NULL_FD) -> None:
        try:
            pid = forked_process.start(work, [fd], _FAILED)
        except OSError as error:
            self._log(f"{_FAILED}: {error.strerror}")
            return
        self._key_by_pid[pid] = key

    def _log(self, line: str) -> None:
        if self._quota.admits(time.monotonic()):
            log_line(line)


def _file(uid: int, member: str) -> Path:
    return FOLDER / str(uid) / f"{member}.json"


def _write(path: Path) -> None:
    """Write a file as a whole, if it is not equal already."""
    data = memfd.read_all(forked_process.FIRST_FD)
    with suppress(OSError):
        if path.stat().st_size == len(data) and path.read_bytes() == data:
            return
    path.parent.mkdir(mode=0o700, exist_ok=True)
    temporary = path.with_name(f"{_TEMPORARY}{path.name}")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)


def _prune(folder: Path, admissions: AccessList) -> None:
    for of_agent in folder.iterdir() if folder.exists() else ():
        for file in of_agent.iterdir():
            rule = admissions.by_server.get(file.stem)
            if not (rule and rule.is_member and _may_be_agent(rule, of_agent.name)):
                file.unlink()
        with suppress(OSError):  # not empty
            of_agent.rmdir()


def _may_be_agent(rule: AccessRule, uid: str) -> bool:
    """Return whether an account may be an agent of a server, as far as root could list its groups.

    A group without listed members may have any.
    """
    listed = {*rule.uids, *rule.members, *rule.http_uids}
    return uid in map(str, listed) or (bool(rule.gids) and not rule.members)
