"""Pages of sessions' processes, in the monitor: for what is too long for a packet.

A page is a memfd, which the session writes to, and which is sealed when the monitor takes it.
"""

import os
import socket

from mcpwrap.as_gate.ipc import packets
from mcpwrap.as_gate.ipc.packets import ChannelError
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket import memfd


class SessionPages:
    """Pages of one kind. A session, by the PID of its process, has one at a time."""

    def __init__(self, kind: str) -> None:
        """`kind` is the name of the memfds, and what error messages call their content."""
        self._kind = kind
        self._page_by_session: dict[int, int] = {}

    def new(self, session: int) -> int:
        """Return a new page, in the place of one that was not used.

        Raises:
            OSError: it could not be made.
        """
        self.drop(session)
        fd = self._page_by_session[session] = memfd.unsealed(self._kind)
        return fd

    def hand_out(self, session: int, channel: socket.socket) -> None:
        """Answer the request of a session for a page, without blocking.

        Raises:
            OSError: the session has ended, or does not read.
        """
        try:
            page = self.new(session)
        except OSError as error:
            log_line(f"cannot make a page for {self._kind}: {error.strerror}")
            packets.refuse_page(channel)
        else:
            packets.hand_page(channel, page)

    def take(self, session: int) -> int:
        """Seal the page of a session, and return its descriptor; the caller closes it.

        Raises:
            ChannelError: the session has no page.
            OSError: the session still has it mapped for writing.
        """
        fd = self._page_by_session.pop(session, None)
        if fd is None:
            raise ChannelError(f"it has written no {self._kind}")
        try:
            memfd.seal(fd)
        except OSError:
            os.close(fd)
            raise
        return fd

    def drop(self, session: int) -> None:
        """Close a page that was not used."""
        fd = self._page_by_session.pop(session, None)
        if fd is not None:
            os.close(fd)
