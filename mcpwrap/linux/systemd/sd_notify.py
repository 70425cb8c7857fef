"""Notifications to systemd: ready, status, watchdog (sd_notify(3))."""

import math
import time

import sdnotify

_ALIVE_EVERY_S = 5.0  # each notification wakes systemd; most units have a WatchdogSec= of 30


class Notifier:
    """Sender of notifications to systemd (sd_notify(3)). Without systemd it sends none."""

    def __init__(self, alive_every_s: float = _ALIVE_EVERY_S) -> None:
        self._alive_every_s = alive_every_s
        self._notifier = sdnotify.SystemdNotifier()
        self._last_alive_at_s = -math.inf

    def ready(self, status: str) -> None:
        """Report that the service accepts connections."""
        self._notifier.notify(f"READY=1\nSTATUS={status}")

    def status(self, status: str) -> None:
        """Replace the line that `systemctl status` shows."""
        self._notifier.notify(f"STATUS={status}")

    def alive(self) -> None:
        """Reset the watchdog, so that systemd does not restart this service.

        It may be called often: a notification is sent at most every `alive_every_s`.
        """
        now_s = time.monotonic()
        if now_s - self._last_alive_at_s >= self._alive_every_s:
            self._last_alive_at_s = now_s
            self._notifier.notify("WATCHDOG=1")
