"""Socket activation: listening sockets that systemd passes at start (sd_listen_fds(3))."""

import fcntl
import os
import socket
from collections.abc import Mapping

_FIRST_FD = 3  # sd_listen_fds(3): SD_LISTEN_FDS_START


def listening_socket(environ: Mapping[str, str]) -> socket.socket:
    """Return the one socket that PID 1 passed to this process (sd_listen_fds(3)).

    Raises:
        RuntimeError: the process was not started by its socket unit.
    """
    (listener,) = _listening(environ, 1)
    return listener


def any_listening_sockets(environ: Mapping[str, str]) -> list[socket.socket]:
    """Return all sockets that PID 1 passed to this process, of a unit that root can extend.

    Raises:
        RuntimeError: the process was not started by its socket unit.
    """
    count = environ.get("LISTEN_FDS", "")
    return _listening(environ, int(count) if count.isdecimal() else 0)


def listening_sockets(environ: Mapping[str, str], *paths: str) -> list[socket.socket]:
    """Return the sockets that PID 1 passed to this process, in the order of `paths`.

    Raises:
        RuntimeError: the process was not started by its socket unit, or the unit has other paths.
    """
    by_path = {one.getsockname(): one for one in _listening(environ, len(paths))}
    if by_path.keys() != set(paths):
        raise RuntimeError(
            f"systemd passed other sockets than this service has: {sorted(by_path)}; "
            "start it by its socket unit [E-SYSTEM-SOCKET-UNIT]"
        )
    return [by_path[path] for path in paths]


def _listening(environ: Mapping[str, str], count: int) -> list[socket.socket]:
    is_ours = environ.get("LISTEN_PID") == str(os.getpid())
    if not is_ours or not count or environ.get("LISTEN_FDS") != str(count):
        raise RuntimeError(
            "systemd passed no socket to this service; "
            "start it by its socket unit [E-SYSTEM-SOCKET-UNIT]"
        )
    fds = range(_FIRST_FD, _FIRST_FD + count)
    for fd in fds:
        fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    return [socket.socket(fileno=fd) for fd in fds]
