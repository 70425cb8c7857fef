"""Program that executes a Squid instance, beside a child that checks its health (watchdog).

Arguments: the instance, then Squid's command. Squid does not support systemd's watchdog
(sd_notify(3)). In its place a child in its unit sends a request to the instance's own listener for
this, at which everything is refused. While the child waits for the answer, it sends nothing to
systemd.
"""

import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

from mcpwrap.core.names import EGRESS_PORT, health_address
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.systemd.sd_notify import Notifier

_ASK_EVERY_S = 1.0  # a tenth of the unit's WatchdogSec=
_CONNECT_S = 2.0  # the kernel answers for Squid, also for one that hangs
_REQUEST = b"GET http://health.invalid/ HTTP/1.1\r\nHost: health.invalid\r\n\r\n"
_ANSWER_BYTES = 65536
_RESERVED_FDS = 200  # twice RESERVED_FD of Squid: with fewer left it takes no connection


def main() -> None:
    """Become Squid, beside a child that asks it."""
    instance, *command = sys.argv[1:]
    squid = os.getpid()
    if os.fork() == 0:
        prctl.end_with_parent(signal.SIGKILL)
        if os.getppid() == squid:
            is_full = partial(has_no_descriptors_left, squid)
            report((health_address(instance), EGRESS_PORT), Notifier(_ASK_EVERY_S), is_full)
        return
    os.execv(command[0], command)


def has_no_descriptors_left(pid: int) -> bool:
    """Say whether a Squid with our limit of descriptors takes no further connection."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError):  # it has ended
        return len(list(Path(f"/proc/{pid}/fd").iterdir())) > limit - _RESERVED_FDS
    return False


def report(health: tuple[str, int], notifier: Notifier, is_full: Callable[[], bool]) -> NoReturn:
    """Tell systemd that Squid answers, as often as it does; without end."""
    while True:
        # Over one connection: it is most often open already when a flood takes all descriptors.
        with suppress(OSError), socket.create_connection(health, _CONNECT_S) as connection:
            connection.settimeout(_ASK_EVERY_S)
            while _answers(connection, notifier, is_full):
                notifier.alive()
                time.sleep(_ASK_EVERY_S)
        # Squid has read its files anew, they are of an earlier version, or another account has the
        # port. None of this is a Squid that hangs.
        notifier.alive()
        time.sleep(_ASK_EVERY_S)


def _answers(connection: socket.socket, notifier: Notifier, is_full: Callable[[], bool]) -> bool:
    """Wait for an answer, whatever it is; false if Squid closes the connection.

    One that has used up its descriptors accepts nobody, and goes on with what it has.
    """
    connection.sendall(_REQUEST)
    while True:
        try:
            return bool(connection.recv(_ANSWER_BYTES))
        except TimeoutError:
            if is_full():
                notifier.alive()
