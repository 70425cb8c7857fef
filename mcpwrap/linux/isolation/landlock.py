"""Landlock sandbox of a process and its children, for good: paths, signals to others, and TCP.

Source: landlock(7), linux/landlock.h. Python has no binding; the three calls are made by number.
"""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION_FLAG, _PATH_BENEATH = 1, 1
# File access rights by the ABI version that introduced them; each includes those before.
_RIGHTS_BY_ABI = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 5: 0xFFFF}
_FILE_RIGHTS = 0x1 | 0x2 | 0x4 | 0x4000 | 0x8000  # execute, write, read, truncate, ioctl
_READ = 0x1 | 0x4 | 0x8  # execute, read a file, read a folder
_NETWORK_SINCE_ABI, _TCP = 4, 0x1 | 0x2  # bind, connect
_SCOPES_SINCE_ABI, _SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 6, 1, 2
KEEPS_FILES_WHOLE_SINCE_ABI = 3  # before, a file that may be read may be truncated

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Return the kernel's ABI version: 1 in Linux 5.13, 6 in 6.12; 0 without Landlock."""
    found: int = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)
    return max(0, found)


def ruleset_without(shut_paths: frozenset[str], open_paths: frozenset[str]) -> int:
    """Return a descriptor of rules that refuse `shut_paths`, except `open_paths` below them.

    Other access is unchanged. Where the kernel can (6.12), they also refuse signals to processes
    that are not the caller's own descendants, and abstract unix sockets of others. Paths are
    absolute and need not exist. It takes a millisecond; `restrict` is the quick part.

    Raises:
        OSError: the kernel refused.
    """
    rights = _rights()
    paths = (*_around("/", shut_paths), *sorted(open_paths))
    return _ruleset([(path, rights) for path in paths], network=0)


def allow(ruleset_fd: int, path: str) -> None:
    """Add full access to what is at and below this path, if that exists.

    Raises:
        OSError: the kernel refused.
    """
    _allow(ruleset_fd, path, _rights())


def restrict(ruleset_fd: int) -> None:
    """Restrict the caller by these rules, and close them.

    Raises:
        OSError: the kernel refused; nothing is restricted.
    """
    try:
        _call(_RESTRICT_SELF, ruleset_fd, 0)
    finally:
        os.close(ruleset_fd)


class Tcp(IntEnum):
    """TCP access of a process, as far as Landlock restricts it (Linux 6.7)."""

    ALLOWED = 0
    REFUSED = _TCP


def leave(to_read: Iterable[str], to_write: Iterable[str], tcp: Tcp) -> None:
    """Refuse access to all paths but these; `to_read` may be read and run.

    Signals and abstract unix sockets are refused as by `ruleset_without`.

    Raises:
        OSError: the kernel refused, or has no Landlock; nothing is restricted.
    """
    rights = _rights()
    rules = [(path, _READ) for path in to_read] + [(path, rights) for path in to_write]
    restrict(_ruleset(rules, network=tcp))


def _rights() -> int:
    abi = version()
    if not abi:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    return _RIGHTS_BY_ABI[max(known for known in _RIGHTS_BY_ABI if known <= abi)]


def _ruleset(rules: Iterable[tuple[str, int]], *, network: int) -> int:
    """Return the rules as a descriptor. Source: struct landlock_ruleset_attr, grown twice."""
    abi = version()
    attributes = struct.pack("QQQ", _rights(), network, _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS)
    size = 24 if abi >= _SCOPES_SINCE_ABI else 16 if abi >= _NETWORK_SINCE_ABI else 8
    ruleset_fd = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0)
    try:
        for path, rights in rules:
            _allow(ruleset_fd, path, rights)
    except BaseException:
        os.close(ruleset_fd)
        raise
    return ruleset_fd


def _around(folder: str, shut_paths: frozenset[str]) -> Iterator[str]:
    """Yield paths that cover `folder` but `shut_paths`: a rule applies to all below its path."""
    for entry in os.scandir(folder):
        if entry.path in shut_paths:
            continue
        if any(path.startswith(f"{entry.path}/") for path in shut_paths):
            yield from _around(entry.path, shut_paths)
        else:
            yield entry.path


def _allow(ruleset_fd: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return  # it was removed, or this account cannot reach it: there is nothing to allow
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISLNK(mode):
            allowed = rights if stat.S_ISDIR(mode) else rights & _FILE_RIGHTS
            beneath = struct.pack("=Qi", allowed, fd)
            _call(_ADD_RULE, ruleset_fd, _PATH_BENEATH, beneath, 0)
    finally:
        os.close(fd)


def _call(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
