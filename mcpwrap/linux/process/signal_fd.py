"""Signals, and names created in folders, as descriptors: one poll(2) waits for all events."""

import ctypes
import os
import signal
import struct
from collections.abc import Iterable, Mapping

_CREATED, _MOVED_TO, _OVERFLOWED = 0x100, 0x80, 0x4000  # linux/inotify.h
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, bytes of the name that follows
_BUFFER_BYTES = 64 * 1024
_libc = ctypes.CDLL(None, use_errno=True)
_NUMBERS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


def block_signal(number: signal.Signals) -> None:
    """Block a signal until `on_signals`; without a handler it would end the process."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})


def on_signals() -> int:
    """Return a descriptor from which one byte is read for each signal of `_NUMBERS`: its number."""
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    for number in _NUMBERS:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _NUMBERS)
    return read_fd


def restore_signals() -> None:
    """Restore the default actions of these signals, in a forked child."""
    signal.set_wakeup_fd(-1)
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_DFL)


class CreatedNames:
    """Names created in watched folders by any account; they may be gone. Source: inotify(7)."""

    def __init__(self, fd: int, folder_by_watch: Mapping[int, str]) -> None:
        """`fd` is of inotify: `watched` makes one, in this or in another process."""
        self._fd = fd
        self.folder_by_watch = folder_by_watch

    @classmethod
    def watched(cls, folders: Iterable[str]) -> "CreatedNames":
        """Watch those of the folders that exist.

        Raises:
            OSError: the account has too many instances or watches, or may not list a folder.
        """
        fd = _expect(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
        folder_by_watch: dict[int, str] = {}
        for folder in folders:
            try:
                watch = _libc.inotify_add_watch(fd, os.fsencode(folder), _CREATED | _MOVED_TO)
                folder_by_watch[_expect(watch, folder)] = folder
            except (FileNotFoundError, NotADirectoryError):
                continue
        return cls(fd, folder_by_watch)

    def close(self) -> None:
        """Watch no longer."""
        os.close(self._fd)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable on a new name."""
        return self._fd

    def read(self) -> set[str]:
        """Return the paths of all names created since the last call.

        Raises:
            OverflowError: there were too many for the kernel's queue.
        """
        made: set[str] = set()
        try:
            while events := os.read(self._fd, _BUFFER_BYTES):
                made |= self._parsed(events)
        except BlockingIOError:
            return made
        return made

    def _parsed(self, events: bytes) -> set[str]:
        made, at = set(), 0
        while at < len(events):
            watch, mask, _, length = _EVENT.unpack_from(events, at)
            if mask & _OVERFLOWED:
                raise OverflowError
            at += _EVENT.size
            name = os.fsdecode(events[at : at + length].rstrip(b"\0"))
            if folder := self.folder_by_watch.get(watch):
                made.add(f"{folder}/{name}")
            at += length
        return made


def _expect(result: int, name: str | None = None) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return result
