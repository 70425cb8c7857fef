"""Question on the terminal that the agent left to its servers, as their standard error.

It is asked only while no program reads keys there, and this process is in the foreground. The
oldest question is asked; a line `y` or `n` answers it.
"""

import os
import termios
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from mcpwrap.core.approval import document
from mcpwrap.core.approval.client_forms import PERSON_S
from mcpwrap.core.approval.entry import QueuedApproval
from mcpwrap.core.approval.views.terminal_question import question_rows
from mcpwrap.core.wire.approval_socket import Channel, DecideRequest, Verdict
from mcpwrap.linux import tty

_STDERR = 2
_LFLAG = 3  # in the list of termios.tcgetattr
_MAX_ROWS = 200  # of a question; a longer one is read in a pager, not here
_VERDICTS = {"y": Verdict.APPROVE, "yes": Verdict.APPROVE, "n": Verdict.DENY, "no": Verdict.DENY}


class AgentTerminal:
    """Terminal of the agent's user. Times are seconds of one monotonic clock."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._entry: QueuedApproval | None = None
        self._shown_at_s = 0.0
        self._has_warned = False

    @classmethod
    def found(cls) -> "AgentTerminal | None":
        """Return the terminal that is this process's standard error; None if it is not one.

        The agent may read a typed line first: reading must not wait for the next.
        """
        flags = os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK
        with suppress(OSError):
            return cls(os.open(os.ttyname(_STDERR), flags))
        return None

    def fileno(self) -> int:
        """Return the descriptor, to poll while a question is on the terminal."""
        return self._fd

    @property
    def is_asking(self) -> bool:
        """Return whether a question is on the terminal."""
        return self._entry is not None

    def update(
        self,
        entries: Sequence[QueuedApproval],
        documents: Callable[[str], tuple[str, list[bytes]] | None],
    ) -> None:
        """Ask the oldest question, unless it is on the terminal already."""
        if self._entry is not None and any(one.id == self._entry.id for one in entries):
            return
        self._entry = None
        if not entries or not self._is_ours():
            return
        entry = entries[0]
        found = documents(entry.id)
        rows = [] if found is None else self._rows(entry, found[1])
        if not rows or len(rows) > _MAX_ROWS:
            return
        tty.warn_lines(rows)
        self._entry, self._shown_at_s, self._has_warned = entry, time.monotonic(), False
        self._forget_typed()

    def answer(self) -> DecideRequest | None:
        """Read a typed line; return the decision in it, if it is one on the shown question."""
        entry = self._entry
        if entry is None or not self._is_ours():  # it stays readable, or was hung up
            self._entry = None
            return None
        try:
            line = os.read(self._fd, 1024)
        except BlockingIOError:
            return None
        except OSError:
            self._entry = None
            return None
        if time.monotonic() - self._shown_at_s < PERSON_S:  # typed before it was read
            self._forget_typed()
            if not self._has_warned:
                tty.warn(f"mcpwrap: {entry.id}: read it first; then type y or n, and Enter")
            self._has_warned = True
            return None
        verdict = _VERDICTS.get(line.decode(errors="replace").strip().lower())
        if verdict is None:
            tty.warn(f"mcpwrap: {entry.id}: type y or n, and Enter")
            return None
        self._entry = None
        return DecideRequest(
            id=entry.id, digest=entry.about.digest, verdict=verdict, channel=Channel.TERMINAL
        )

    def _is_ours(self) -> bool:
        """Return whether lines that are typed now are for this process, if for any.

        An agent that draws a screen, or reads keys, has switched off the terminal's own line
        editing. Source: termios(3), tcgetpgrp(3).
        """
        try:
            flags = termios.tcgetattr(self._fd)[_LFLAG]
            is_foreground = os.tcgetpgrp(self._fd) == os.getpgrp()
        except (OSError, termios.error):
            return False
        return is_foreground and bool(flags & termios.ICANON)

    def _rows(self, entry: QueuedApproval, texts: Sequence[bytes]) -> list[str]:
        """Return the question as rows of the terminal; an empty list if it cannot be read."""
        columns = tty.columns_of(self._fd)
        try:
            asked, *before = map(document.read, texts)
        except msgspec.MsgspecError:
            return []
        if columns is None:
            return []
        return question_rows(entry, asked, before[0] if before else None, columns)

    def _forget_typed(self) -> None:
        with suppress(termios.error):
            termios.tcflush(self._fd, termios.TCIFLUSH)
