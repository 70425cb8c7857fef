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
    every_s: float = 5.0  # at most one in so long, whatever an agent asks for
    again_s: float = 10.0  # after the gate was lost
    goes_on: Callable[[], bool] = lambda: True


@click.command("notify")
def command() -> int:
    """Show a notification for each request that waits, with a link to the page.

    It goes on until it is ended; mcpwrap-notify.service runs it on a desktop. A notification
    approves nothing. Several requests in a few seconds are told in one.

    \b
    Example:  systemctl --user enable --now mcpwrap-notify
    """
    run(ApprovalNotifySettings())
    return 0


def run(settings: ApprovalNotifySettings) -> None:
    """Show what waits, also after the gate was restarted.

    Raises:
        McpwrapError: there is no notify-send.
    """
    desktop_notify.expect(settings.program)
    telling = _Telling(settings)
    while settings.goes_on():
        try:
            with ApprovalConnection(settings.door) as door:
                _watch(door, telling, settings)
        except McpwrapError as error:
            telling.complain(f"{error.where}: {error.problem}")
            time.sleep(settings.again_s)


def _watch(door: ApprovalConnection, telling: "_Telling", settings: ApprovalNotifySettings) -> None:
    listing = door.watch()
    telling.heard(listing)
    while settings.goes_on():
        readable, _, _ = select.select([door.fileno()], [], [], telling.tell_in_s())
        if readable:
            listing = door.next_listing()
            telling.heard(listing)
        telling.tell()


class _Telling:
    """Notifications that are due, with a rate limit."""

    def __init__(self, settings: ApprovalNotifySettings) -> None:
        self._settings = settings
        self._known = UnseenItems()
        self._new: list[Pending] = []
        self._waiting = 0
        self._next_at_s = 0.0
        self._complained = ""

    def heard(self, listing: Listing) -> None:
        """Take what waits now; what is answered in the meantime is told to nobody."""
        mine = [one for one in listing.pending if one.may != "no"]
        new = self._known.unseen(mine)
        self._new = [one for one in self._new if self._known.was_pending(one.id)] + new
        self._waiting = len(mine)
        self._complained = ""

    def tell_in_s(self) -> float | None:
        """Return in how many seconds there is something to tell; None for nothing."""
        return max(0.0, self._next_at_s - time.monotonic()) if self._new else None

    def tell(self) -> None:
        """Tell what is new, if it is time."""
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
            self.complain(error.problem)

    def complain(self, text: str) -> None:
        """Say it once, until it is something else."""
        if text != self._complained:
            tty.warn(text)
        self._complained = text
