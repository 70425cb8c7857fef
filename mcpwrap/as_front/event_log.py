"""Egress event log in a file, with a maximum size and a rate limit for the events of each server.

Because of both bounds no server can fill the disk.
"""

import asyncio
import os
import time
from collections import defaultdict
from pathlib import Path

from mcpwrap.core import log_rate_limit
from mcpwrap.core.wire.sni_front_log import FrontEvent, FrontEventKind, encode
from mcpwrap.linux.systemd.stderr_log import log_line

PATH = Path("/var/log/mcpwrap/front/events.jsonl")
# At this size it is renamed to `events.jsonl.old`, which replaces an older one.
MAX_FILE_BYTES = 16 * 1024 * 1024
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
MAX_EVENTS_PER_S = 20
_MINUTE_S = 60.0
_MAX_NAMES = MAX_EVENTS_PER_S * 60  # more cannot be written in that time


class EventRateLimit(log_rate_limit.LogRateLimit):
    """Event rate limit of one server, and the names that it queried in this minute."""

    def __init__(self) -> None:
        super().__init__(MAX_EVENTS_PER_S)
        self._names: set[str] = set()
        self._names_since_s = 0.0

    def is_new_name(self, name: str, now_s: float) -> bool:
        """Return whether this name is queried for the first time in this minute."""
        if now_s - self._names_since_s >= _MINUTE_S:
            self._names.clear()
            self._names_since_s = now_s
        if name in self._names:
            return False
        if len(self._names) < _MAX_NAMES:
            self._names.add(name)
        return True


class EventLog:
    """Event log writer. A failed write is logged to the journal once, and service goes on."""

    def __init__(self, path: Path = PATH) -> None:
        self._path = path
        self._fd = -1
        self._bytes = 0
        self._quota_by_server: defaultdict[str, EventRateLimit] = defaultdict(EventRateLimit)
        self.reopen()

    def reopen(self) -> None:
        """Continue in a new file, if the old one has been moved away."""
        if self._fd != -1:
            os.close(self._fd)
        self._fd = -1
        try:
            self._fd = os.open(self._path, _FLAGS, 0o640)
            self._bytes = os.fstat(self._fd).st_size
        except OSError as error:
            log_line(f"events are not written: {error} [E-FRONT-EVENTS]")

    def asked(self, server: str, host: str, detail: str) -> None:
        """Log a queried name, if it is the first time in a minute."""
        if self._quota_by_server[server].is_new_name(host, time.monotonic()):
            self.note(server, "asked", host, detail)

    def note(self, server: str, kind: FrontEventKind, host: str = "", detail: str = "") -> None:
        """Log an event; beyond the rate limit, log a count of the events left out."""
        quota = self._quota_by_server[server]
        if quota.admits(time.monotonic()):
            self._write(server, kind, host, detail)
        elif quota.is_first_left_out():
            asyncio.get_running_loop().call_later(1.0, self._note_left_out, server)

    def forget(self, server: str) -> None:
        """Drop the state of a server that is no longer served."""
        self._note_left_out(server)
        self._quota_by_server.pop(server, None)

    def _note_left_out(self, server: str) -> None:
        quota = self._quota_by_server.get(server)
        if quota and (count := quota.take_left_out()):
            self._write(server, "more", "", f"{count} more")

    def _write(self, server: str, kind: FrontEventKind, host: str, detail: str) -> None:
        if self._fd == -1:
            return
        line = encode(
            FrontEvent(t=time.time(), server=server, event=kind, host=host, detail=detail)
        )
        try:
            if self._bytes + len(line) > MAX_FILE_BYTES:
                self._path.rename(f"{self._path}.old")
                self.reopen()
            self._bytes += os.write(self._fd, line)
        except OSError as error:
            log_line(f"events are not written: {error} [E-FRONT-EVENTS]")
            os.close(self._fd)
            self._fd = -1
