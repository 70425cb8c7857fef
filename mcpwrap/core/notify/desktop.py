r"""Text of desktop notifications: enough to look, and no markup or escape that acts by itself.

Source: the Desktop Notifications Specification, "Markup": the body may be read as HTML; and
notify-send(1), which reads `\n`, `\074` and their like in it before it sends it.
"""

import html
from collections.abc import Sequence
from typing import NamedTuple

from mcpwrap.core.notify.drift import DriftItem
from mcpwrap.core.text.sanitise import visible
from mcpwrap.core.wire.approval_socket import Pending

PAGE = "http://127.0.0.1:52080/"
_MAX_CHARS = 80  # of one name: what follows must still be on the screen
_MAX_LINES = 5  # of one notification; the command shows all


class DesktopNotification(NamedTuple):
    """Summary and body of one notification."""

    summary: str
    body: str


def approval_notification(
    new: Sequence[Pending], waiting: int, account: str
) -> DesktopNotification:
    """Return what is said of requests that are new, with `waiting` in all.

    `account` is that of the agent of the first. Several are told in one, for an agent can ask
    without end.
    """
    if len(new) > 1:
        return DesktopNotification("mcpwrap", f"{waiting} requests wait for approval\n{PAGE}")
    [one] = new
    lines = [
        f"{_name(one.server)}: {_name(one.target)}",
        f"asked for by an agent of {_name(account)}",
        f"{PAGE}approval/{_name(one.id)}",
    ]
    return DesktopNotification("mcpwrap: a request waits for approval", "\n".join(lines))


def drift_notification(new: Sequence[DriftItem]) -> DesktopNotification:
    """Return what is said of servers that are not wrapped, and of files that were not read."""
    lines = [_item_line(one) for one in new[:_MAX_LINES]]
    if len(new) > _MAX_LINES:
        lines.append(f"and {len(new) - _MAX_LINES} more")
    lines.append("mcpwrap clients shows them, and why")
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
    """Return a name as one line of text, whichever of the two readings the body gets."""
    line = visible(" ".join(untrusted.split()))
    short = line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]}…"
    return html.escape(short).replace("\\", "\\\\")
