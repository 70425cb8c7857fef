"""Approval socket of one `mcpwrap run`, for `mcpwrap approvals --user` of the same account.

It speaks the protocol of the gate's socket (core/wire/approval_socket).
"""

import os
import select
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mcpwrap.as_agent.run.approvals.broker import UserApprovals
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.wire import approval_socket
from mcpwrap.core.wire.approval_socket import (
    ApprovalProtocolError,
    DecideRequest,
    DocumentReply,
    DoneReply,
    EndOfList,
    FromApprover,
    ListRequest,
    RefusedReply,
    RevokeRequest,
    SavedRulesReply,
    SavedRulesRequest,
    ShowRequest,
    ToApprover,
    WatchRequest,
)
from mcpwrap.linux.unix_socket import fd_passing, memfd, peer_credentials
from mcpwrap.session.approvals.user_rules import UserRules

MAX_CONNECTIONS = 16
_MODE = 0o600


@dataclass(slots=True, eq=False)
class _Approver:
    socket: socket.socket
    is_watching: bool = False


class ApproverSocket:
    """Listening socket with its connections. It never blocks; a slow reader is disconnected."""

    def __init__(
        self, path: Path, approvals: UserApprovals, rules: UserRules, poll: select.poll
    ) -> None:
        """Listen at a path, in a folder that only this account can enter.

        Raises:
            OSError: that is not possible.
        """
        self._path, self._approvals, self._rules, self._poll = path, approvals, rules, poll
        self._approver_by_fd: dict[int, _Approver] = {}
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # of an earlier process with this PID
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._listener.bind(str(path))
            path.chmod(_MODE)
            self._listener.listen(MAX_CONNECTIONS)
        except OSError:
            self._listener.close()
            raise
        poll.register(self._listener, select.POLLIN)

    def remove(self) -> None:
        """Remove the socket's name, so that no other approver connects."""
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the socket and all connections."""
        self._listener.close()
        for approver in list(self._approver_by_fd.values()):
            approver.socket.close()

    def handle(self, fd: int) -> bool:
        """Handle an event of a descriptor; return whether it is one of this socket's."""
        if fd == self._listener.fileno():
            self._accept()
            return True
        approver = self._approver_by_fd.get(fd)
        if approver is None:
            return False
        self._receive(approver)
        return True

    def show_changes(self) -> None:
        """Send the pending questions to the connections that watch."""
        for approver in list(self._approver_by_fd.values()):
            if approver.is_watching:
                self._list(approver)

    def _accept(self) -> None:
        with suppress(OSError):  # the client has closed it
            connection, _ = self._listener.accept()
            connection.settimeout(0.0)
            # Of another account, by a folder that its owner has opened: refused like any stranger.
            uid = peer_credentials.credentials_of(connection).uid
            if uid not in {0, os.getuid()} or len(self._approver_by_fd) >= MAX_CONNECTIONS:
                connection.close()
                return
            self._approver_by_fd[connection.fileno()] = _Approver(connection)
            self._poll.register(connection, select.POLLIN)

    def _receive(self, approver: _Approver) -> None:
        try:
            packet = approver.socket.recv(approval_socket.MAX_BYTES)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if not packet:
            self._disconnect(approver)
            return
        try:
            self._do(approver, approval_socket.decode_question(packet))
        except ApprovalProtocolError as error:
            self._send(approver, RefusedReply(code="wrong", why=str(error)))

    def _do(self, approver: _Approver, asked: FromApprover) -> None:
        match asked:
            case ListRequest():
                self._list(approver)
            case WatchRequest():
                approver.is_watching = True
                self._list(approver)
            case ShowRequest(id_):
                self._show(approver, id_)
            case DecideRequest():
                self._send(approver, self._approvals.decide(asked))
            case SavedRulesRequest():
                rules = msgspec.json.encode(self._rules.rules())
                self._send(approver, SavedRulesReply(), [rules])
            case RevokeRequest(id_):
                self._send(approver, self._revoked(id_))
            case _:
                why = "`mcpwrap run` has neither pins, passwords nor a list of its rules"
                self._send(approver, RefusedReply(code="wrong", why=why))

    def _list(self, approver: _Approver) -> None:
        for entry in self._approvals.entries():
            self._send(approver, entry.pending("yes", "yes"))
        self._send(approver, EndOfList())

    def _show(self, approver: _Approver, id_: str) -> None:
        found = self._approvals.documents(id_)
        if found is None:
            why = f"no pending request has the id {shown(id_)}"
            self._send(approver, RefusedReply(code="gone", why=why))
            return
        digest, texts = found
        self._send(approver, DocumentReply(id=id_, digest=digest), texts)

    def _revoked(self, id_: str) -> DoneReply | RefusedReply:
        try:
            if self._rules.revoke(id_):
                return DoneReply(text=f"rule {shown(id_)} is revoked")
        except OSError as error:
            why = f"rule {shown(id_)} cannot be removed: {error.strerror}"
            return RefusedReply(code="busy", why=why)
        why = f"no approval rule has the id {shown(id_)} [E-APPROVAL-NO-RULE]"
        return RefusedReply(code="gone", why=why)

    def _send(
        self, approver: _Approver, packet: ToApprover, texts: list[bytes] | None = None
    ) -> None:
        if approver.socket.fileno() < 0:
            return
        fds = [memfd.sealed("approval", text) for text in texts or []]
        try:
            data = approval_socket.encode(packet)
            if fds:
                fd_passing.send(approver.socket, data, fds)
            else:
                approver.socket.send(data)
        except OSError:
            self._disconnect(approver)
        finally:
            fd_passing.close_all(fds)

    def _disconnect(self, approver: _Approver) -> None:
        if self._approver_by_fd.pop(approver.socket.fileno(), None):
            self._poll.unregister(approver.socket)
            approver.socket.close()
