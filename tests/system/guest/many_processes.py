"""Processes that a server starts and leaves. Runs inside the machine, as a server."""

import os
import signal


def fork_up_to(most: int) -> int:
    """Fork children that wait for their end, until there are `most` or the kernel refuses."""
    for count in range(most):
        try:
            pid = os.fork()
        except OSError:
            return count
        if pid == 0:
            while True:
                signal.pause()
    return most
