"""Approval documents, in the monitor, each in a sealed memfd that cannot change."""

import os
from collections.abc import Iterable

from mcpwrap.as_gate.ipc.packets import ChannelError
from mcpwrap.as_gate.ipc.session_pages import SessionPages
from mcpwrap.core.approval import document
from mcpwrap.core.approval.document import MAX_DOCUMENT_BYTES
from mcpwrap.core.approval.entry import Tool
from mcpwrap.core.approval.views.preview import MAX_PREVIEW_BYTES
from mcpwrap.linux.unix_socket import memfd

MAX_APPROVED = 64  # tools whose last approved call is stored, for a diff


class Documents:
    """Documents by question id, and the last approved document of each tool."""

    def __init__(self) -> None:
        self.pages = SessionPages("document")
        self._fd_by_id: dict[str, int] = {}
        self._preview_by_id: dict[str, int] = {}
        self._approved: dict[Tool, int] = {}

    def take(self, session: int) -> tuple[int, str, int]:
        """Return the page of a session, sealed, with its digest and size; the caller closes it.

        Raises:
            ChannelError: the session has no page, or wrote too much.
            OSError: the session still has the page mapped.
        """
        fd = self.pages.take(session)
        size = os.fstat(fd).st_size
        if size > MAX_DOCUMENT_BYTES:
            os.close(fd)
            raise ChannelError(f"its document has {size} bytes")
        return fd, document.digest(memfd.read_all(fd)), size

    def keep(self, id_: str, fd: int) -> None:
        """Store the document of a question."""
        self._fd_by_id[id_] = fd

    def keep_preview(self, session: int, id_: str | None) -> None:
        """Store the page of a session as the preview of a question; close it if there is none.

        Raises:
            ChannelError: the session has no page, or wrote too much.
            OSError: the session still has the page mapped.
        """
        fd = self.pages.take(session)
        size = os.fstat(fd).st_size
        if id_ is None or size > MAX_PREVIEW_BYTES:
            os.close(fd)
        else:
            self._drop_preview(id_)
            self._preview_by_id[id_] = fd
        if size > MAX_PREVIEW_BYTES:
            raise ChannelError(f"its preview has {size} bytes")

    def preview(self, id_: str) -> int | None:
        """Return the preview of a question; None if it has none."""
        return self._preview_by_id.get(id_)

    def _drop_preview(self, id_: str) -> None:
        fd = self._preview_by_id.pop(id_, None)
        if fd is not None:
            os.close(fd)

    def find(self, id_: str) -> int:
        """Return the document of a pending question."""
        return self._fd_by_id[id_]

    def last_approved(self, tool: Tool) -> int | None:
        """Return the last approved document of a tool and agent."""
        return self._approved.get(tool)

    def approved(self, id_: str, tool: Tool) -> None:
        """Store an approved document for the diff of the tool's next request."""
        before = self._approved.pop(tool, None)
        if before is None and len(self._approved) >= MAX_APPROVED:
            before = self._approved.pop(next(iter(self._approved)))
        if before is not None:
            os.close(before)
        self._approved[tool] = self._fd_by_id.pop(id_)

    def keep_only(self, ids: Iterable[str]) -> None:
        """Close the documents of all other questions."""
        kept = set(ids)
        for gone in self._fd_by_id.keys() - kept:
            os.close(self._fd_by_id.pop(gone))
        for gone in self._preview_by_id.keys() - kept:
            self._drop_preview(gone)
