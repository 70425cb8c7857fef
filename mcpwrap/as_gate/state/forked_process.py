"""Forked process of the monitor, for work that waits for a disk or parses what others wrote."""

import fcntl
import os
import signal
import traceback
from collections.abc import Callable, Sequence

from mcpwrap.linux.process import signal_fd
from mcpwrap.linux.systemd.stderr_log import log_line

FIRST_FD = 3  # of the descriptors that the process keeps
_MAX_S = 60  # then the kernel ends it, unless it waits for a disk
_ABOVE = 64  # descriptors that it keeps are moved here first, so that none replaces another


def start(work: Callable[[], None], fds: Sequence[int], failed: str) -> int:
    """Start a process for `work`; return its PID.

    It has copies of `fds`, numbered from `FIRST_FD` on, and no other descriptor of the monitor.
    `failed` begins the line that is logged if the work raises OSError.

    Raises:
        OSError: it could not be made.
    """
    pid = os.fork()
    if pid == 0:
        _run(work, fds, failed)
    return pid


def _run(work: Callable[[], None], fds: Sequence[int], failed: str) -> None:
    """In the new process: close the monitor's descriptors, do the work, and exit."""
    try:
        signal_fd.restore_signals()
        signal.alarm(_MAX_S)
        above = [fcntl.fcntl(fd, fcntl.F_DUPFD, _ABOVE) for fd in fds]
        for number, fd in enumerate(above, start=FIRST_FD):
            os.dup2(fd, number)
        os.closerange(FIRST_FD + len(fds), 1_048_576)
        work()
    except OSError as error:
        log_line(f"{failed}: {error}")
    except BaseException:  # noqa: BLE001 - the monitor's code must not continue in this process
        log_line(f"a bug in mcpwrap-gate: {traceback.format_exc()}")
    finally:
        os._exit(0)
