"""Scripted gate on a socket, for the approval page."""

import hashlib
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from mcpwrap.core.approval import document as approval_document
from mcpwrap.core.approval.approval_rule import ApprovalRule
from mcpwrap.core.approval.document import Question
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.approval_socket import (
    MAX_BYTES,
    DecideRequest,
    DocumentReply,
    DoneReply,
    EndOfList,
    FromApprover,
    ListRequest,
    LoginRequest,
    Paused,
    Pending,
    RefusedReply,
    RevokeRequest,
    SavedRulesReply,
    SavedRulesRequest,
    ShowRequest,
    ToApprover,
    WatchRequest,
    decode_question,
    encode,
)
from mcpwrap.linux.unix_socket import fd_passing, memfd
from tests.shared import pace

AGENT_UID = 4242
OTHERS_UID = 4343
PASSWORD = b"correct horse"


def question(arguments: dict[str, Json], *, agent_uid: int = AGENT_UID) -> Question:
    return Question(
        agent_uid=agent_uid,
        server="sqlite",
        method="tools/call",
        target="write_query",
        definition="d" * 64,
        params={"name": "write_query", "arguments": arguments},
        policy="p" * 64,
    )


class ScriptedGate:
    """Scripted gate. `waiting` has pending calls by id; `decided` and `logins` the requests."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "approve.sock")
        self.waiting: dict[str, Question] = {}
        self.before: Question | None = None
        self.rules: list[ApprovalRule] = []
        self.deciding: tuple[str, ...] = ()
        self.exact: tuple[str, ...] = ()
        self.paused: tuple[Paused, ...] = ()
        self.refusal: RefusedReply | None = None  # for the next logins and decisions
        self.refuse_after = -1  # after so many decisions the next ones get `later`
        self.later: RefusedReply | None = None
        self.decided: list[DecideRequest] = []
        self.logins: list[LoginRequest] = []
        self.is_watched = threading.Event()
        self._watchers: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(self.path)
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def wait(
        self,
        id_: str,
        asked: Question,
        *,
        message: str = "deletes rows",
        expires_at: float = 1.79e9 + 300,
    ) -> None:
        """Add a pending call, and notify watching connections."""
        self._expires_at = expires_at
        self.waiting[id_] = asked
        self._message = message
        self.tell()

    def tell(self) -> None:
        for watcher in self._watchers:
            self._list(watcher)

    def digest_of(self, id_: str) -> str:
        return approval_document.digest(approval_document.document(self.waiting[id_]))

    def close(self) -> None:
        """Close all connections, and accept no others."""
        for connection in (self._listener, *self._watchers):
            with suppress(OSError):  # it is closed already
                connection.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(pace.WAIT_S)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=[connection], daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(ConnectionError):  # a client may close at any time
            while packet := connection.recv(MAX_BYTES):
                match decode_question(packet):
                    case ListRequest():
                        self._list(connection)
                    case WatchRequest():
                        self._watchers.append(connection)
                        self._list(connection)
                        self.is_watched.set()
                    case ShowRequest(id_):
                        self._show(connection, id_)
                    case LoginRequest() as login:
                        self.logins.append(login)
                        connection.send(encode(self._verdict_on(login.password)))
                    case DecideRequest() as decide:
                        connection.send(encode(self._decide(decide)))
                    case other:
                        self._serve_rules(connection, other)

    def _serve_rules(self, connection: socket.socket, asked: FromApprover) -> None:
        if isinstance(asked, RevokeRequest):
            connection.send(encode(self._revoke(asked.id)))
            return
        assert isinstance(asked, SavedRulesRequest)
        fd = memfd.sealed("rules", msgspec.json.encode(self.rules))
        fd_passing.send(connection, encode(SavedRulesReply()), [fd])
        os.close(fd)

    def _revoke(self, id_: str) -> ToApprover:
        if self.refusal:
            return self.refusal
        self.rules = [rule for rule in self.rules if rule.id != id_]
        return DoneReply(text=f"rule {id_} is revoked")

    def _verdict_on(self, password: bytes) -> ToApprover:
        wrong = RefusedReply(code="proof", why="that is not the password")
        return self.refusal or (DoneReply(text="logged in") if password == PASSWORD else wrong)

    def _decide(self, decide: DecideRequest) -> ToApprover:
        if self.later and len(self.decided) == self.refuse_after:
            return self.later
        if decide.id not in self.waiting:
            return RefusedReply(code="gone", why="no such call waits")
        verdict = self._verdict_on(decide.password)
        if isinstance(verdict, DoneReply):
            if decide.digest != self.digest_of(decide.id):
                return RefusedReply(code="changed", why="it is another call by now")
            self.decided.append(decide)
            del self.waiting[decide.id]
            return DoneReply(text="approved", user=decide.user)
        return verdict

    def _list(self, connection: socket.socket) -> None:
        for id_, asked in self.waiting.items():
            connection.send(encode(self._pending(id_, asked)))
        for paused in self.paused:
            connection.send(encode(paused))
        connection.send(encode(EndOfList()))

    def _pending(self, id_: str, asked: Question) -> Pending:
        shown = approval_document.document(asked)
        return Pending(
            id=id_, digest=hashlib.sha256(shown).hexdigest(), size=len(shown),
            agent_uid=asked.agent_uid, server=asked.server, session="s-1", method=asked.method,
            target=asked.target, rule="ask-before-delete", message=self._message,
            asked_at=1.79e9, expires_at=self._expires_at, times=1, waiting=1, may="proof",
            asking=("ask-before-delete",), deciding=self.deciding, exact=self.exact,
        )  # fmt: skip

    def _show(self, connection: socket.socket, id_: str) -> None:
        if id_ not in self.waiting:
            connection.send(encode(RefusedReply(code="gone", why="no such call waits")))
            return
        documents = [approval_document.document(q) for q in (self.waiting[id_], self.before) if q]
        fds = [memfd.sealed("document", document) for document in documents]
        packet = encode(DocumentReply(id=id_, digest=approval_document.digest(documents[0])))
        fd_passing.send(connection, packet, fds)
        for fd in fds:
            os.close(fd)


@contextmanager
def scripted_gate(folder: Path) -> Iterator[ScriptedGate]:
    gate = ScriptedGate(folder)
    try:
        yield gate
    finally:
        gate.close()
