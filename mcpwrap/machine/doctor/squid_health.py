"""Health of the Squid instances, as systemd reports it to every account."""

import time
from collections.abc import Iterable

from mcpwrap.linux.systemd.systemctl import UP, properties

SILENT = "does not answer"
_SILENT_S = 5.0  # half of the units' WatchdogSec=; a Squid that answers notifies each second
_MICROSECONDS = 1_000_000


def problems(units: Iterable[str]) -> dict[str, str]:
    """Return the problem of each unit that does not serve, by unit: a verb for after its name."""
    found = properties(set(units), ["ActiveState", "WatchdogTimestampMonotonic"])
    texts = {unit: problem(shown, time.monotonic()) for unit, shown in found.items()}
    return {unit: text for unit, text in texts.items() if text}


def fix(unit: str, problem: str) -> str:
    """Return the fix for a unit with this problem."""
    restart = f"`sudo systemctl restart {unit}`"
    if problem == SILENT:
        return f"it is restarted within 15 s, or by {restart}"
    return f"{restart}; `journalctl -u {unit}` shows why"


def problem(shown: dict[str, str], now_s: float) -> str:
    """Return the problem of one unit; "" if it answers, or its unit has no watchdog yet."""
    if shown["ActiveState"] not in UP:
        return f"is {shown['ActiveState']}"
    last_us = int(shown["WatchdogTimestampMonotonic"])  # on the clock of time.monotonic()
    is_silent = last_us and now_s - last_us / _MICROSECONDS > _SILENT_S
    return SILENT if is_silent else ""
