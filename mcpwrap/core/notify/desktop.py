r"""Text of desktop notifications, with markup and escape sequences escaped.

Source: the Desktop Notifications Specification, "Markup": the body may be parsed as HTML; and
notify-send(1), which interprets `\n`, `\074` and similar escapes before it sends the body.
"""

import html
from collections.abc import Sequence
from typing import NamedTuple

from mcpwrap.core.notify.drift import DriftItem
from mcpwrap.core.pins import pin_question
from mcpwrap.core.text.sanitise import visible
from mcpwrap.core.wire.approval_socket import PAGE_SOCKET, Pending

PAGE = f"where {PAGE_SOCKET} is on: http://127.0.0.1:52080/"
_MAX_CHARS = 80  # of one name, so that the text after it is still on the screen
_MAX_LINES = 5  # of one notification; `mcpwrap clients` shows all


class DesktopNotification(NamedTuple):
    """Summary and body of one notification."""

    summary: str
    body: str


def approval_notification(
    new: Sequence[Pending], waiting: int, account: str
) -> DesktopNotification:
    """Return the notification for new approval requests, of `waiting` pending ones in all.

    `account` is that of the first request's agent. Several requests share one notification, since
    an agent can send any number.
    """
    if len(new) > 1:
        return DesktopNotification("mcpwrap", f"{_several(waiting)}\nmcpwrap approvals\n{PAGE}")
    [one] = new
    if one.method == pin_question.METHOD:
        return _definitions_notification(one)
    lines = [
        f"{_name(one.server)}: {_name(one.target)}",
        f"requested by an agent of {_name(account)}",
        f"mcpwrap approvals show {_name(one.id)}",
        f"{PAGE}approval/{_name(one.id)}",
    ]
    return DesktopNotification("mcpwrap: a request waits for approval", "\n".join(lines))


def _several(waiting: int) -> str:
    return f"{waiting} requests wait for approval"


def run_notification(new: Sequence[Pending], waiting: int) -> DesktopNotification:
    """Return the notification for new approval requests of `mcpwrap run`, which has no page."""
    command = "mcpwrap approvals --user"
    if len(new) > 1:
        return DesktopNotification("mcpwrap", f"{_several(waiting)}\n{command}")
    [one] = new
    lines = [f"{_name(one.server)}: {_name(one.target)}", f"{command} show {_name(one.id)}"]
    return DesktopNotification("mcpwrap: a request waits for approval", "\n".join(lines))


def _definitions_notification(one: Pending) -> DesktopNotification:
    lines = [
        f"{_name(one.server)}: {_name(one.target)}",
        f"mcpwrap tools diff {_name(one.server)} shows it",
        f"{PAGE}approval/{_name(one.id)}",
    ]
    return DesktopNotification("mcpwrap: tools of a server are held back", "\n".join(lines))


def drift_notification(new: Sequence[DriftItem]) -> DesktopNotification:
    """Return the notification for servers that are not wrapped, and files that were not read."""
    lines = [_item_line(one) for one in new[:_MAX_LINES]]
    if len(new) > _MAX_LINES:
        lines.append(f"and {len(new) - _MAX_LINES} more")
    lines.append("mcpwrap clients lists them, and why")
    servers = sum(1 for one in new if one.at)
    match servers:
        case 0:
            summary = "mcpwrap: an agent's file was not read"
        case 1:
            summary = "mcpwrap: a server is not wrapped"
        case _:
            summary = f"mcpwrap: {servers} servers are not wrapped"
    return DesktopNotification(summary, "\n".join(lines))


def _item_line(one: DriftItem) -> str:
    agents = _name(", ".join(one.agents))
    name = one.at[-1] if one.at else one.path
    return f"{_name(name)} ({agents}): {one.state}"


def _name(untrusted: str) -> str:
    """Return a name as one line that HTML and notify-send(1) show as it is."""
    line = visible(" ".join(untrusted.split()))
    short = line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]}…"
    return html.escape(short).replace("\\", "\\\\")
