"""Thread of `mcpwrap run` that serves approvers: socket, terminal, notifications, outcomes."""

import os
import select
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mcpwrap.as_agent.run.approvals.approver_socket import ApproverSocket
from mcpwrap.as_agent.run.approvals.broker import UserApprovals
from mcpwrap.as_agent.run.approvals.terminal import AgentTerminal
from mcpwrap.core.approval.entry import QueuedApproval
from mcpwrap.core.notify.desktop import DesktopNotification, run_notification
from mcpwrap.core.notify.unseen import UnseenItems
from mcpwrap.core.wire.approval_socket import Pending
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import desktop_notify
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.session.approvals.user_rules import UserRules
from mcpwrap.session.relay.gate_relay import GateRelay

_NOTIFY_EVERY_S = 5.0


class ApproverServing:
    """Channels to the user of one run. The thread that calls `run` does all of it."""

    def __init__(
        self,
        approvals: UserApprovals,
        rules: UserRules,
        socket_path: Path,
        *,
        has_desktop: bool,
    ) -> None:
        self._approvals = approvals
        self._poll = select.poll()
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll.register(self._wake_fd, select.POLLIN)
        self._socket = self._listening(socket_path, rules)
        self._is_over = False
        self._terminal = AgentTerminal.found()
        self._is_terminal_polled = False
        self._desktop = _Desktop() if has_desktop else None
        approvals.wake = partial(os.eventfd_write, self._wake_fd, 1)

    def close(self) -> None:
        """Remove the socket, and have the thread end."""
        self._is_over = True
        if self._socket is not None:
            self._socket.remove()
        self._approvals.wake()

    def run(self, relay: GateRelay, stop: Callable[[], None]) -> None:
        """Serve until `close` is called. `stop` ends the server."""
        try:
            while not self._is_over:
                self._serve(relay, stop)
        finally:
            if self._socket is not None:
                self._socket.close()

    def _serve(self, relay: GateRelay, stop: Callable[[], None]) -> None:
        desktop_s = self._desktop.due_in_s() if self._desktop is not None else None
        due_s = (relay.due_in_s(), self._approvals.due_in_s(), desktop_s)
        for fd, _ in self._poll.poll(_timeout_ms(*due_s)):
            self._handle(fd)
        has_changed = False
        for outcome in self._approvals.take_outcomes():
            has_changed = True
            relay.handle_outcome(outcome)
            if outcome.stops:
                stop()
        relay.tick()
        if has_changed or self._is_woken():
            self._show_changes()
        if self._desktop is not None:
            self._desktop.show_due()

    def _handle(self, fd: int) -> None:
        if self._terminal is not None and fd == self._terminal.fileno():
            if decide := self._terminal.answer():
                self._approvals.decide(decide)
            self._poll_terminal(self._terminal)
        elif self._socket is not None:
            self._socket.handle(fd)

    def _is_woken(self) -> bool:
        try:
            os.eventfd_read(self._wake_fd)
        except BlockingIOError:
            return False
        return True

    def _show_changes(self) -> None:
        entries = self._approvals.entries()
        if self._socket is not None:
            self._socket.show_changes()
        if self._terminal is not None:
            self._terminal.update(entries, self._approvals.documents)
            self._poll_terminal(self._terminal)
        if self._desktop is not None:
            self._desktop.update(entries)

    def _poll_terminal(self, terminal: AgentTerminal) -> None:
        """Read the terminal only while a question is on it."""
        if terminal.is_asking and not self._is_terminal_polled:
            self._poll.register(terminal, select.POLLIN)
        elif not terminal.is_asking and self._is_terminal_polled:
            self._poll.unregister(terminal)
        self._is_terminal_polled = terminal.is_asking

    def _listening(self, path: Path, rules: UserRules) -> ApproverSocket | None:
        try:
            return ApproverSocket(path, self._approvals, rules, self._poll)
        except OSError as error:
            log_line(f"{path}: `mcpwrap approvals --user` cannot answer: {error.strerror or error}")
            return None


class _Desktop:
    """Notifications on the user's desktop, of which several in a few seconds are one."""

    def __init__(self) -> None:
        self._known = UnseenItems()
        self._new: list[Pending] = []
        self._waiting = 0
        self._next_at_s = 0.0

    def update(self, entries: list[QueuedApproval]) -> None:
        """Take the questions. One that is answered before its notification is dropped."""
        new = self._known.unseen([entry.pending("yes", "yes") for entry in entries])
        self._new = [one for one in self._new if self._known.was_pending(one.id)] + new
        self._waiting = len(entries)

    def due_in_s(self) -> float | None:
        """Return the seconds until the next notification is due; None if none is."""
        return max(0.0, self._next_at_s - time.monotonic()) if self._new else None

    def show_due(self) -> None:
        """Show a notification of the new questions, if one is due."""
        if not self._new or time.monotonic() < self._next_at_s:
            return
        shown = run_notification(self._new, self._waiting)
        self._new, self._next_at_s = [], time.monotonic() + _NOTIFY_EVERY_S
        threading.Thread(target=partial(_show, shown), daemon=True).start()


def _show(shown: DesktopNotification) -> None:
    try:
        desktop_notify.show(shown, desktop_notify.NOTIFY_SEND)
    except McpwrapError as error:
        log_line(error.named_problem)


def _timeout_ms(*due_s: float | None) -> int | None:
    """Return the time until the first is due, for poll(2)."""
    known = [one for one in due_s if one is not None]
    return 1 + int(1000 * min(known)) if known else None
