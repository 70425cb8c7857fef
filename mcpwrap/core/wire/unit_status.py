"""Wrapper's `STATUS=` line for systemd: for people to read, and for `mcpwrap status` to parse."""

import re

_TEXT = re.compile(r"ready: ([0-9]+) of [0-9]+ sessions(?:; .*)?")


def text(sessions: int, limit: int, *notes: str) -> str:
    """Return the `STATUS=` of a wrapper (sd_notify(3))."""
    return "; ".join([f"ready: {sessions} of {limit} sessions", *filter(None, notes)])


def sessions_in(status_text: str) -> int:
    """Return the number of sessions in a `STATUS=`; 0 if it has no number."""
    found = _TEXT.fullmatch(status_text)
    return int(found[1]) if found else 0
