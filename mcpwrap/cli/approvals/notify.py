"""`mcpwrap approvals notify`: show pending approvals on the desktop. It approves nothing."""

import select
import time
from collections.abc import Callable
from dataclasses import dataclass

import click

from mcpwrap.core.notify.desktop import approval_notification
from mcpwrap.core.notify.unseen import UnseenItems
from mcpwrap.core.wire.approval_socket import Pending
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection, Listing
from mcpwrap.linux import accounts, desktop_notify, tty


@dataclass(frozen=True, slots=True)
class ApprovalNotifySettings:
    """Approval socket, desktop program and intervals."""

    door: str = approvals.PATH
    program: str = desktop_notify.NOTIFY_SEND
    every_s: float = 5.0  # at most one notification in this time, however many requests come
    again_s: float = 10.0  # pause before a new connection after the gate was lost
    goes_on: Callable[[], bool] = lambda: True


@click.command("notify")
def command() -> int:
    """Show a desktop notification for each pending request, with its command and the page's link.

    Runs until it is stopped; the user unit mcpwrap-notify.service runs it on a desktop. A
    notification approves nothing. Several requests within a few seconds share one notification.

    \b
    Example:  systemctl --user enable --now mcpwrap-notify
    """
    run(ApprovalNotifySettings())
    return 0


def run(settings: ApprovalNotifySettings) -> None:
    """Show notifications for pending requests; reconnect after the gate was restarted.

    Raises:
        McpwrapError: notify-send is not installed.
    """
    desktop_notify.expect(settings.program)
    notifier = _Notifier(settings)
    while settings.goes_on():
        try:
            with ApprovalConnection(settings.door) as connection:
                _watch(connection, notifier, settings)
        except McpwrapError as error:
            notifier.warn(f"{error.where}: {error.named_problem}")
            time.sleep(settings.again_s)


def _watch(
    connection: ApprovalConnection, notifier: "_Notifier", settings: ApprovalNotifySettings
) -> None:
    listing = connection.watch()
    notifier.update(listing)
    while settings.goes_on():
        readable, _, _ = select.select([connection.fileno()], [], [], notifier.due_in_s())
        if readable:
            listing = connection.next_listing()
            notifier.update(listing)
        notifier.show_due()


class _Notifier:
    """Notifications that are due, with a rate limit."""

    def __init__(self, settings: ApprovalNotifySettings) -> None:
        self._settings = settings
        self._known = UnseenItems()
        self._new: list[Pending] = []
        self._waiting = 0
        self._next_at_s = 0.0
        self._warned = ""

    def update(self, listing: Listing) -> None:
        """Take the pending requests. One that is answered before its notification is dropped."""
        mine = [one for one in listing.pending if one.may != "no"]
        new = self._known.unseen(mine)
        self._new = [one for one in self._new if self._known.was_pending(one.id)] + new
        self._waiting = len(mine)
        self._warned = ""

    def due_in_s(self) -> float | None:
        """Return the seconds until the next notification is due; None if none is pending."""
        return max(0.0, self._next_at_s - time.monotonic()) if self._new else None

    def show_due(self) -> None:
        """Show a notification of the new requests, if one is due."""
        if not self._new or time.monotonic() < self._next_at_s:
            return
        uid = self._new[0].agent_uid
        account = accounts.name_of(uid) or str(uid)
        shown = approval_notification(self._new, self._waiting, account)
        self._new = []
        self._next_at_s = time.monotonic() + self._settings.every_s
        try:
            desktop_notify.show(shown, self._settings.program)
        except McpwrapError as error:
            self.warn(error.named_problem)

    def warn(self, text: str) -> None:
        """Print a warning, unless it is the same as the last one."""
        if text != self._warned:
            tty.warn(text)
        self._warned = text
