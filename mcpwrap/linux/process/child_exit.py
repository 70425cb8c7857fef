"""Waiting for a child's exit (waitpid(2)), with a callback for signals that arrive before it."""

import os
import signal
from collections.abc import Callable, Collection


def await_end(pid: int, numbers: Collection[int], on_signal: Callable[[int], None]) -> int:
    """Wait for the end of a child; return its exit status, or 128+N if signal N ended it.

    Until then each signal in `numbers` is passed to `on_signal`. Other children that end are
    reaped. The caller blocks SIGCHLD and `numbers` before it forks the child: sigwait(3) loses no
    signal. A handler in Python would not run for a signal that arrives between its last check and
    wait(2).
    """
    while True:
        number = signal.sigwait({signal.SIGCHLD, *numbers})
        if number != signal.SIGCHLD:
            on_signal(number)
            continue
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):  # one SIGCHLD for several
            if ended[0] == pid:
                code = os.waitstatus_to_exitcode(ended[1])
                return code if code >= 0 else 128 - code
