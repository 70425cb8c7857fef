"""Wrapper's `STATUS=` line for systemd: written for people, parsed by `mcpwrap status`."""

import re

_TEXT = re.compile(r"ready: ([0-9]+) of [0-9]+ sessions(?:; .*)?")


def text(sessions: int, limit: int, *notes: str) -> str:
    """Return the `STATUS=` of a wrapper (sd_notify(3))."""
    return "; ".join([f"ready: {sessions} of {limit} sessions", *filter(None, notes)])


def sessions_in(status_text: str) -> int:
    """Return the number of sessions that a `STATUS=` names; 0 where it names none."""
    found = _TEXT.fullmatch(status_text)
    return int(found[1]) if found else 0
