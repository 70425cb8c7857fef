"""RUNS AS mcpwrap-proxy or mcpwrap-intercept: executes Squid beside a process that asks it.

Arguments: the instance, then Squid's command. Squid knows no watchdog of systemd's (sd_notify(3)).
In its place a child in its unit sends a request to the instance's own listener for this, at which
everything is refused. The child waits for the answer, and what waits sends nothing to systemd.
"""

import os
import signal
import socket
import sys
import time
from contextlib import suppress

from mcpwrap.core.names import health_address
from mcpwrap.linux import prctl
from mcpwrap.linux.notifier import Notifier

_PORT = 3128
_ASK_EVERY_S = 1.0  # a tenth of the unit's WatchdogSec=
_CONNECT_S = 2.0  # the kernel answers for Squid, also for one that hangs
_REQUEST = b"GET http://health.invalid/ HTTP/1.1\r\nHost: health.invalid\r\n\r\n"
_ANSWER_BYTES = 65536


def main() -> None:
    """Become Squid, beside a child that asks it."""
    instance, *command = sys.argv[1:]
    squid = os.getpid()
    if os.fork() == 0:
        prctl.end_with_parent(signal.SIGKILL)
        if os.getppid() == squid:
            report((health_address(instance), _PORT), Notifier(_ASK_EVERY_S))
        return
    os.execv(command[0], command)


def report(health: tuple[str, int], notifier: Notifier) -> None:
    """Tell systemd that Squid answers, as often as it does; without end."""
    while True:
        # Over one connection: it is open already when a flood of others takes all descriptors.
        with suppress(OSError), socket.create_connection(health, _CONNECT_S) as connection:
            connection.settimeout(None)
            while _answers(connection):
                notifier.alive()
                time.sleep(_ASK_EVERY_S)
        # Squid has read its files anew, they are of an earlier version, or another account has the
        # port. None of this is a Squid that hangs.
        notifier.alive()
        time.sleep(_ASK_EVERY_S)


def _answers(connection: socket.socket) -> bool:
    """Wait for an answer, whatever it is; false if Squid closes the connection."""
    connection.sendall(_REQUEST)
    return bool(connection.recv(_ANSWER_BYTES))
