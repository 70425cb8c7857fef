"""Stand-in gate over a real socket: announces pending calls, and shows them."""

import socket
import threading
from contextlib import suppress
from pathlib import Path

import msgspec

from mcpwrap.core.approval import document
from mcpwrap.core.approval.document import Question
from mcpwrap.core.wire import approval_socket
from mcpwrap.core.wire.approval_socket import (
    DocumentReply,
    EndOfList,
    Pending,
    RefusedReply,
    ShowRequest,
    WatchRequest,
)
from mcpwrap.linux.unix_socket import fd_passing, memfd

PENDING = Pending(
    id="k3b7", digest="", size=0, agent_uid=0, server="sqlite", session="1-1", method="tools/call",
    target="write_query", rule="ask-first", message="Changes the table.", asked_at=1e9,
    expires_at=4e9, times=1, waiting=1, may="no",
)  # fmt: skip
QUESTION = Question(
    agent_uid=0, server="sqlite", method="tools/call", target="write_query", definition="",
    params={"name": "write_query", "arguments": {"query": "DELETE FROM t -- hunter2"}}, policy="",
)  # fmt: skip


def pending(id_: str, question: Question = QUESTION) -> Pending:
    """Return the pending approval of a question."""
    shown = document.document(question)
    return msgspec.structs.replace(
        PENDING, id=id_, digest=document.digest(shown), size=len(shown), target=question.target
    )


class Gate:
    """Stand-in gate: answers `watch` and `show`. `tell` sets the pending calls."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.questions: dict[str, Question] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(self.path)
        self._listener.listen()
        self._lock = threading.Lock()
        self._pending: list[Pending] = []
        self._watching: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def tell(self, *pending: Pending) -> None:
        """Replace the pending approvals."""
        with self._lock:
            self._pending = list(pending)
            for connection in self._watching:
                self._list(connection)

    def hang_up(self) -> None:
        """Close all watching connections, as a restart does."""
        with self._lock:
            for connection in self._watching:
                connection.close()
            self._watching.clear()

    def close(self) -> None:
        """Close the socket and all connections."""
        self._listener.close()
        self.hang_up()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        with self._lock:
            match approval_socket.decode_question(connection.recv(65_536)):
                case WatchRequest():
                    self._watching.append(connection)
                    self._list(connection)
                case ShowRequest(id_) if question := self.questions.get(id_):
                    shown = document.document(question)
                    fd = memfd.sealed("document", shown)
                    answer = DocumentReply(id=id_, digest=document.digest(shown))
                    fd_passing.send(connection, approval_socket.encode(answer), [fd])
                    fd_passing.close_all([fd])
                    connection.close()
                case _:
                    connection.send(
                        approval_socket.encode(RefusedReply(code="gone", why="it is gone"))
                    )
                    connection.close()

    def _list(self, connection: socket.socket) -> None:
        packets: list[Pending | EndOfList] = [*self._pending, EndOfList()]
        with suppress(BrokenPipeError):  # the client has closed already
            for packet in packets:
                connection.send(approval_socket.encode(packet))
