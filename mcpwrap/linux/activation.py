"""What systemd hands over at start, and what is said back to it."""

import fcntl
import os
import socket
from collections.abc import Mapping

import sdnotify

_FIRST_FD = 3  # sd_listen_fds(3): SD_LISTEN_FDS_START


def listening_socket(environ: Mapping[str, str]) -> socket.socket:
    """Return the one socket that PID 1 made for this process (sd_listen_fds(3)).

    Raises:
        RuntimeError: the process was not started by its socket unit.
    """
    if environ.get("LISTEN_PID") != str(os.getpid()) or environ.get("LISTEN_FDS") != "1":
        raise RuntimeError("start me by my socket: I was given no descriptor")
    fcntl.fcntl(_FIRST_FD, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    return socket.socket(fileno=_FIRST_FD)


class Notifier:
    """Tells systemd how we are (sd_notify(3)). Without systemd it tells nobody."""

    def __init__(self) -> None:
        self._notifier = sdnotify.SystemdNotifier()

    def ready(self, status: str) -> None:
        """Say that connections are answered from now on."""
        self._notifier.notify(f"READY=1\nSTATUS={status}")

    def status(self, status: str) -> None:
        """Replace the line that `systemctl status` shows."""
        self._notifier.notify(f"STATUS={status}")

    def alive(self) -> None:
        """Keep the watchdog from restarting us."""
        self._notifier.notify("WATCHDOG=1")
