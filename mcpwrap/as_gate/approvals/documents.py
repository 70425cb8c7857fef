"""Documents that approvers are shown, in the monitor, in sealed memory that cannot change."""

import os
from collections.abc import Iterable

from mcpwrap.as_gate.ipc.packets import ChannelError
from mcpwrap.core.approval import document
from mcpwrap.core.approval.document import MAX_DOCUMENT_BYTES
from mcpwrap.core.approval.entry import Tool
from mcpwrap.linux.unix_socket import memfd

MAX_APPROVED = 64  # tools whose last approved call is kept, to show what differs


class Documents:
    """Documents by the question's id, and the last one that was approved of each tool."""

    def __init__(self) -> None:
        self._page_by_session: dict[int, int] = {}
        self._fd_by_id: dict[str, int] = {}
        self._approved: dict[Tool, int] = {}

    def page(self, session: int) -> int:
        """Return a new page for a session to write to; it has one at a time.

        Raises:
            OSError: there is none.
        """
        self.drop_page(session)
        fd = memfd.unsealed("document")
        self._page_by_session[session] = fd
        return fd

    def take_page(self, session: int) -> tuple[int, str, int]:
        """Return what a session has written, sealed: its descriptor, digest and size.

        Raises:
            ChannelError: it has no page, or wrote too much.
            OSError: it still has it mapped.
        """
        fd = self._page_by_session.pop(session, None)
        if fd is None:
            raise ChannelError("it has written no document")
        try:
            memfd.seal(fd)
            size = os.fstat(fd).st_size
        except OSError:
            os.close(fd)
            raise
        if size > MAX_DOCUMENT_BYTES:
            os.close(fd)
            raise ChannelError(f"its document has {size} bytes")
        return fd, document.digest(memfd.read_all(fd)), size

    def drop_page(self, session: int) -> None:
        """Close a page that was not used."""
        fd = self._page_by_session.pop(session, None)
        if fd is not None:
            os.close(fd)

    def keep(self, id_: str, fd: int) -> None:
        """Keep the document of a question."""
        self._fd_by_id[id_] = fd

    def find(self, id_: str) -> int:
        """Return the document of a question that waits."""
        return self._fd_by_id[id_]

    def last_approved(self, tool: Tool) -> int | None:
        """Return the document of the last approved request of that agent's account."""
        return self._approved.get(tool)

    def approved(self, id_: str, tool: Tool) -> None:
        """Keep a document for the next request of that tool."""
        before = self._approved.pop(tool, None)
        if before is None and len(self._approved) >= MAX_APPROVED:
            before = self._approved.pop(next(iter(self._approved)))
        if before is not None:
            os.close(before)
        self._approved[tool] = self._fd_by_id.pop(id_)

    def keep_only(self, ids: Iterable[str]) -> None:
        """Close the documents of all other questions."""
        for gone in self._fd_by_id.keys() - set(ids):
            os.close(self._fd_by_id.pop(gone))
