"""Signals as bytes on a descriptor, so that one poll(2) waits for all that can happen."""

import os
import signal

_NUMBERS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP)


def on_signals() -> int:
    """Return a descriptor on which SIGCHLD, SIGTERM and SIGHUP arrive, as bytes of their number."""
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    for number in _NUMBERS:
        signal.signal(number, lambda *_: None)
    return read_fd


def off() -> None:
    """In a forked child: let these signals do again what they do by default."""
    signal.set_wakeup_fd(-1)
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_DFL)
