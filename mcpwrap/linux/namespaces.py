"""Namespaces that an ordinary user may make: what a process sees is its own from then on.

Source: namespaces(7), user_namespaces(7), mount_namespaces(7), mount_setattr(2).
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from enum import IntFlag
from pathlib import Path

_MOUNT_SETATTR, _HERE, _RECURSIVE, _READ_ONLY = 442, -100, 0x8000, 0x1
_BIND, _WITH_ALL_BELOW, _PRIVATE = 1 << 12, 1 << 14, 1 << 18  # MS_BIND, MS_REC, MS_PRIVATE
_OF_PROC = 2 | 4 | 8  # MS_NOSUID, MS_NODEV, MS_NOEXEC

_libc = ctypes.CDLL(None, use_errno=True)


class Kind(IntFlag):
    """What can be a process's own. Without USER only root can make the others."""

    MOUNTS = 0x00020000
    IPC = 0x08000000
    USER = 0x10000000
    PROCESSES = 0x20000000  # from the next child on, which is their first
    NETWORK = 0x40000000


def part(kinds: Kind) -> None:
    """Enter new namespaces of these kinds. The account stays the same, and is the only one there.

    Raises:
        OSError: this machine does not let an ordinary user do so.
    """
    uid, gid = os.geteuid(), os.getegid()
    if _libc.unshare(kinds) != 0:
        raise _error()
    for file, text in (
        ("setgroups", "deny"),  # or the next would need root
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        Path("/proc/self", file).write_text(text, encoding="ascii")


def write_only_to(paths: Iterable[str]) -> None:
    """Make all that is mounted read-only, but for these; also for chmod(2), which Landlock is not.

    /proc shows own processes from then on, unless the machine hides parts of it, as containers do.

    Raises:
        OSError: the kernel refused.
    """
    _mount(None, "/", _WITH_ALL_BELOW | _PRIVATE)
    places = sorted(paths)
    for path in places:
        _mount(path, path, _BIND | _WITH_ALL_BELOW)
    _set_attributes("/", _RECURSIVE, make=_READ_ONLY)
    for path in places:
        _set_attributes(path, 0, clear=_READ_ONLY)
    with suppress(OSError):
        _mount("proc", "/proc", _OF_PROC, b"proc")


def _mount(source: str | None, target: str, flags: int, kind: bytes | None = None) -> None:
    origin = None if source is None else os.fsencode(source)
    if _libc.mount(origin, os.fsencode(target), kind, ctypes.c_ulong(flags), None) != 0:
        raise _error()


def _set_attributes(path: str, how: int, *, make: int = 0, clear: int = 0) -> None:
    wanted = struct.pack("QQQQ", make, clear, 0, 0)
    size = ctypes.c_size_t(len(wanted))
    if _libc.syscall(_MOUNT_SETATTR, _HERE, os.fsencode(path), how, wanted, size) != 0:
        raise _error()


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
