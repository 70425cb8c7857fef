"""Redactor process, one for each session with secrets: removes them from the server's output."""

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import NoReturn

from mcpwrap.core.secrets.redact import Redactor
from mcpwrap.linux.process import signal_fd
from mcpwrap.linux.unix_socket import fd_passing
from mcpwrap.session.relay import copy

_LAST_FD = 6  # 0 to 2 are standard streams; 3 to 6 are copied from and to


def start(value_by_key: Mapping[str, str], to_fds: tuple[int, int]) -> tuple[int, tuple[int, int]]:
    """Fork a process that copies standard output and error until both end.

    Return its PID, and the descriptors for the server in place of `to_fds`, which stay open here.

    It is a process, because the supervisor forks servers: a fork with threads may hang.
    """
    pipes: list[tuple[int, int]] = []
    try:
        pipes += (os.pipe2(os.O_CLOEXEC) for _ in to_fds)
        pid = os.fork()
    except OSError:
        fd_passing.close_all([fd for pair in pipes for fd in pair])
        raise
    if pid == 0:
        _become(value_by_key, [read_fd for read_fd, _ in pipes], to_fds)
    for read_fd, _ in pipes:
        os.close(read_fd)
    return pid, (pipes[0][1], pipes[1][1])


def _become(
    value_by_key: Mapping[str, str], from_fds: list[int], to_fds: tuple[int, int]
) -> NoReturn:
    """In the child: keep four descriptors and the standard streams; copy until both streams end."""
    status = 1
    try:
        signal_fd.restore_signals()
        above = [os.dup(fd) for fd in (*from_fds, *to_fds)]
        while min(above) <= _LAST_FD:
            above = [os.dup(fd) for fd in above]
        from_1, from_2, to_1, to_2 = (os.dup2(fd, n) for n, fd in enumerate(above, start=3))
        os.closerange(_LAST_FD + 1, 1_048_576)
        stderr = threading.Thread(target=_copy, args=(from_2, to_2, value_by_key))
        stderr.start()
        _copy(from_1, to_1, value_by_key)
        stderr.join()
        status = 0
    finally:
        os._exit(status)


def _copy(from_fd: int, to_fd: int, value_by_key: Mapping[str, str]) -> None:
    redactor = Redactor(value_by_key)

    def deliver(chunk: bytes) -> None:
        if clean := redactor.feed(chunk):
            copy.write(to_fd, clean)

    with suppress(BrokenPipeError):  # no reader: after the close the server's next write fails
        copy.relay_each(from_fd, deliver)
        copy.write(to_fd, redactor.rest())
    os.close(from_fd)
    os.close(to_fd)
