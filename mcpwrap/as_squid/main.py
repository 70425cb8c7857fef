"""Program that executes a Squid instance, beside a child that checks its health (watchdog).

Arguments: the instance, then Squid's command, with its configuration file last. Squid does not
support systemd's watchdog (sd_notify(3)). Instead a child in its unit sends requests to a listener
of the instance that is for this check, and refuses everything. While the child waits for a
response, it sends no notification.

Where the configuration names a helper that makes certificates, its folder is made first.
"""

import os
import re
import resource
import signal
import socket
import subprocess
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
_CONNECT_S = 2.0  # the kernel accepts for Squid, even if Squid hangs
_REQUEST = b"GET http://health.invalid/ HTTP/1.1\r\nHost: health.invalid\r\n\r\n"
_ANSWER_BYTES = 65536
# Line of `plan/egress/squid_conf.py`: helper, its folder, and the size of what it keeps there.
_CERTGEN = re.compile(r"^sslcrtd_program (\S+) -s (\S+) -M (\S+)$", re.MULTILINE)
_RESERVED_FDS = 200  # twice RESERVED_FD of Squid: with fewer left it accepts no connection


def main() -> None:
    """Fork the health check, and execute Squid."""
    instance, *command = sys.argv[1:]
    make_certificate_folder(Path(command[-1]).read_text())
    squid = os.getpid()
    if os.fork() == 0:
        prctl.end_with_parent(signal.SIGKILL)
        if os.getppid() == squid:
            is_full = partial(has_no_descriptors_left, squid)
            report((health_address(instance), EGRESS_PORT), Notifier(_ASK_EVERY_S), is_full)
        return
    os.execv(command[0], command)


def make_certificate_folder(configuration: str) -> None:
    """Have Squid's helper make its folder of certificates, which Squid expects to exist.

    Raises:
        CalledProcessError: the helper failed; its message is in the journal.
    """
    found = _CERTGEN.search(configuration)
    if found and not Path(found[2]).is_dir():
        subprocess.run([found[1], "-c", "-s", found[2], "-M", found[3]], check=True)


def has_no_descriptors_left(pid: int) -> bool:
    """Return whether Squid accepts no further connection, by this process's descriptor limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError):  # it has ended
        return len(list(Path(f"/proc/{pid}/fd").iterdir())) > limit - _RESERVED_FDS
    return False


def report(health: tuple[str, int], notifier: Notifier, is_full: Callable[[], bool]) -> NoReturn:
    """Notify systemd at each response of Squid, for ever."""
    while True:
        # Over one connection, which is mostly open already when a flood uses up all descriptors.
        with suppress(OSError), socket.create_connection(health, _CONNECT_S) as connection:
            connection.settimeout(_ASK_EVERY_S)
            while _answers(connection, notifier, is_full):
                notifier.alive()
                time.sleep(_ASK_EVERY_S)
        # Squid has reloaded, its files are of an earlier version, or another account has the port.
        # In none of these cases does Squid hang.
        notifier.alive()
        time.sleep(_ASK_EVERY_S)


def _answers(connection: socket.socket, notifier: Notifier, is_full: Callable[[], bool]) -> bool:
    """Wait for any response; return False if Squid closes the connection.

    A Squid that has used up its descriptors accepts no connection, but serves the open ones.
    """
    connection.sendall(_REQUEST)
    while True:
        try:
            return bool(connection.recv(_ANSWER_BYTES))
        except TimeoutError:
            if is_full():
                notifier.alive()
