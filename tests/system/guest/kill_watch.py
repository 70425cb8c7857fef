"""Kill of one process, and the wait for the end of others. Runs inside the machine, as root."""

import os
import select
import signal
import time
from collections.abc import Sequence
from contextlib import suppress


def kill_and_watch(victim: int, watched: Sequence[int], within_s: float) -> list[int]:
    """Kill one process; return which of the others are left after `within_s`."""
    poll, left = select.poll(), {}
    for pid in watched:
        with suppress(ProcessLookupError):
            fd = os.pidfd_open(pid)
            left[fd] = pid
            poll.register(fd, select.POLLIN)
    give_up_at = time.monotonic() + within_s
    os.kill(victim, signal.SIGKILL)
    while left and (wait_s := give_up_at - time.monotonic()) > 0:
        for fd, _ in poll.poll(wait_s * 1000):
            poll.unregister(fd)
            del left[fd]
    return sorted(left.values())
