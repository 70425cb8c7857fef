"""Disk usage of the persistent folders (state, cache), and their limits.

A child process counts, because a server may have made a tree large or odd. A server that keeps a
removed file open, or writes faster than the count, is noticed when the file system is full.
"""

import os
import select
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from mcpwrap.linux import remove_tree
from mcpwrap.linux.process import signal_fd

_MIB = 1024 * 1024
_LEFT_BYTES = 64 * _MIB  # kept free for root and the audit; of a small file system 1 %
_LEFT_FILES = 1024
_EVERY_S = 1.0
_SHARE = 20  # counts take at most 1/20 of the time; half of it while much is written
_AT_MOST_S = 60.0
_FIRST_S = 2.0  # how long a session waits for a count
_TRIES = 5  # a count may fail while a session that will be ended uses up the memory
_RESULT_FD = 3
_ALL_FDS = 1_048_576
_MAX_TEXT = 4096


@dataclass(frozen=True, slots=True)
class PersistentFolder:
    """Persistent folder, `state` or `cache`, and its limit."""

    name: str
    path: Path
    limit_bytes: int


class DiskUsage:
    """Disk usage of one server at the last count."""

    def __init__(self, folders: Sequence[PersistentFolder]) -> None:
        self._folders = folders
        self._why = ""
        self._is_counted = False
        self._failures = 0
        self._pid = 0  # of the counting process
        self._result_fd = -1
        self._began_s = 0.0
        self._next_s = 0.0
        self._soonest_s = 0.0
        self._free_bytes = 0  # when the last count began
        self._headroom_bytes = 0

    def excess(self) -> str:
        """Return which limit is reached; "" if none. Call it while there are sessions."""
        self._take_result(0.0)
        if self._result_fd < 0 and self._is_due():
            self._begin()
        return self._why or self._full()

    def before_session(self) -> str:
        """Return why a session must be refused; "" if not. An exceeded limit is counted again."""
        if self._folders and (self._why or not self._is_counted):
            if self._result_fd < 0:
                self._begin()
            self._take_result(_FIRST_S)
        return self._why or self._full()

    def has_ended(self, pid: int) -> None:
        """Note that a process has ended, which may be the counting one."""
        if pid == self._pid:
            self._pid = 0

    def stop(self) -> None:
        """Kill the counting process. Its PID is not reused: it is forgotten once reaped."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)

    def _is_due(self) -> bool:
        if not self._folders:
            return False
        now_s = time.monotonic()
        if now_s >= self._next_s or now_s < self._soonest_s:
            return now_s >= self._next_s
        return self._free_bytes - self._free() > self._headroom_bytes // 4

    def _free(self) -> int:
        """Return the free bytes of the file system that has least."""
        rooms = [os.statvfs(folder.path) for folder in self._folders]
        return min(room.f_bavail * room.f_frsize for room in rooms)

    def _full(self) -> str:
        """Return the folder whose file system or project quota is full; "" if none."""
        for folder in self._folders:
            room = os.statvfs(folder.path)  # with a project quota, that of the quota: ext4, xfs
            left = min(_LEFT_BYTES, room.f_blocks * room.f_frsize // 100)
            left_files = min(_LEFT_FILES, room.f_files // 100)
            if room.f_bavail * room.f_frsize < left or room.f_favail < left_files:
                return (
                    f"the file system of its {folder.name}, {folder.path}, is full "
                    "[E-WRAPPER-DISK-FULL]"
                )
        return ""

    def _begin(self) -> None:
        self._began_s, self._free_bytes = time.monotonic(), self._free()
        self._next_s = self._began_s + _AT_MOST_S
        self._headroom_bytes = self._free_bytes  # until the result is read, no other count begins
        self._result_fd, child_fd = os.pipe2(os.O_CLOEXEC)
        try:
            pid = os.fork()
            if pid == 0:
                self._count(child_fd)
            self._pid = pid
        except OSError:  # a session has used up all tasks; the closed pipe reports the failure
            pass
        finally:
            os.close(child_fd)

    def _take_result(self, within_s: float) -> None:
        if self._result_fd < 0 or not _is_readable(self._result_fd, within_s):
            return
        headroom, _, why = os.read(self._result_fd, _MAX_TEXT).decode().partition("\n")
        os.close(self._result_fd)
        self._result_fd = -1
        now_s = time.monotonic()
        took_s = now_s - self._began_s
        self._next_s = now_s + min(max(_EVERY_S, _SHARE * took_s), _AT_MOST_S)
        self._soonest_s = now_s + min(took_s, _AT_MOST_S)
        if headroom:
            self._why, self._headroom_bytes, self._is_counted = why, int(headroom), True
            self._failures = 0
            return
        self._failures += 1
        if self._failures >= _TRIES:
            self._why = (
                "the disk usage of its persistent folders cannot be counted [E-WRAPPER-DISK-COUNT]"
            )

    def _count(self, result_fd: int) -> NoReturn:
        """In the child: write the bytes to the nearest limit, and the limit that is reached."""
        status = 1
        try:
            signal_fd.restore_signals()
            os.dup2(result_fd, _RESULT_FD)  # do not hold the sessions' connections open
            os.closerange(_RESULT_FD + 1, _ALL_FDS)
            with suppress(OSError):
                os.nice(10)
            headroom, why = counted(self._folders)
            os.write(_RESULT_FD, f"{headroom}\n{why}".encode())
            status = 0
        finally:
            os._exit(status)


def _is_readable(fd: int, within_s: float) -> bool:
    poll = select.poll()  # select(2) takes no descriptor over 1023
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(within_s * 1000))


def counted(folders: Sequence[PersistentFolder]) -> tuple[int, str]:
    """Return the bytes left to the nearest limit, and the limit that is reached, or "".

    Raises:
        OSError: a folder cannot be counted for a reason that a server cannot cause.
    """
    headrooms = []
    for folder in folders:
        where = f"its {folder.name}, {folder.path},"
        try:
            used = remove_tree.used_bytes(str(folder.path), at_most=folder.limit_bytes)
        except remove_tree.OddTreeError as error:
            return 0, f"{where} {error} [E-WRAPPER-DISK-COUNT]"
        if used > folder.limit_bytes:
            mib = folder.limit_bytes // _MIB
            return 0, (
                f"{where} has more than {mib} MiB in it (limits, {folder.name}) "
                "[E-WRAPPER-LIMIT-PERSISTENT]"
            )
        headrooms.append(folder.limit_bytes - used)
    return min(headrooms), ""
