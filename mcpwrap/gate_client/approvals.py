"""Client of the gate's approval socket `/run/mcpwrap/approve.sock`: list, watch, show, decide."""

import socket
from typing import Self

import msgspec

from mcpwrap.core.approval import document
from mcpwrap.core.approval.document import Question
from mcpwrap.core.wire import approval_socket
from mcpwrap.core.wire.approval_socket import (
    ApprovalProtocolError,
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
    ShowRequest,
    ToApprover,
    WatchRequest,
)
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.unix_socket import fd_passing, memfd
from mcpwrap.linux.unix_socket.fd_passing import DescriptorError

PATH = "/run/mcpwrap/approve.sock"
_TIMEOUT_S = 30.0  # the check of a password takes a moment, and polkit asks a person


class Listing(msgspec.Struct, frozen=True):
    """Pending approvals, oldest first, and paused agents."""

    pending: tuple[Pending, ...]
    paused: tuple[Paused, ...]


class QuestionDetails(msgspec.Struct, frozen=True):
    """Approval question in full, and the last approved one of the same tool."""

    digest: str
    size: int
    question: Question
    before: Question | None  # the last approved question of that tool


class ApprovalRefusedError(McpwrapError):
    """Refusal by the gate; `reason` is the code of its `RefusedReply`."""

    def __init__(self, refused: RefusedReply) -> None:
        code, fix = _NAME_AND_FIX[refused.code]
        super().__init__(refused.why, where="the gate", fix=fix, code=code)
        self.reason = refused.code


_NAME_AND_FIX = {
    "gone": ("E-APPROVAL-NO-REQUEST", "`mcpwrap approvals list` shows the pending requests"),
    "not-you": ("E-APPROVAL-NOT-ALLOWED", "ask a member of the group mcpwrap-approvers"),
    "proof": (
        "E-APPROVAL-PROOF",
        "give your password; `sudo mcpwrap approvals passwd USER` sets one",
    ),
    "changed": ("E-APPROVAL-CHANGED", "look at it again with `mcpwrap approvals show`"),
    "late": ("E-APPROVAL-EXPIRED", "have the agent ask again"),
    "busy": ("E-APPROVAL-BUSY", "wait a moment, then retry"),
    "wrong": ("E-APPROVAL-VERSION", "update both sides: they are of different versions"),
}


class ApprovalConnection:
    """Connection to the approval socket. As a context manager it is closed at the end."""

    def __init__(self, path: str = PATH) -> None:
        """Connect.

        Raises:
            McpwrapError: the gate does not listen.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(_TIMEOUT_S)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise _unreachable(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def fileno(self) -> int:
        """Return the descriptor to poll for the next listing after `watch`."""
        return self._socket.fileno()

    def listing(self) -> Listing:
        """Return the pending approvals."""
        self._send(ListRequest())
        return self.next_listing()

    def watch(self) -> Listing:
        """Return the pending approvals; from now on `next_listing` returns them after each change.

        No other request may be sent on this connection any more.
        """
        self._send(WatchRequest())
        listing = self.next_listing()
        self._socket.settimeout(None)
        return listing

    def next_listing(self) -> Listing:
        """Wait for the next listing, and return it."""
        pending: list[Pending] = []
        paused: list[Paused] = []
        while True:
            match self._receive()[0]:
                case Pending() as one:
                    pending.append(one)
                case Paused() as one:
                    paused.append(one)
                case EndOfList():
                    return Listing(tuple(pending), tuple(paused))
                case RefusedReply() as refused:
                    raise ApprovalRefusedError(refused)
                case _:
                    raise _another_version()

    def show(self, id_: str) -> QuestionDetails:
        """Return a question in full, after a check that its document has the named digest."""
        self._send(ShowRequest(id_))
        packet, fds = self._receive()
        try:
            texts = [memfd.read_all(fd) for fd in fds]
        finally:
            fd_passing.close_all(fds)
        match packet:
            case DocumentReply(digest=digest) if texts and document.digest(texts[0]) == digest:
                return _seen(digest, texts)
            case RefusedReply() as refused:
                raise ApprovalRefusedError(refused)
            case _:
                raise _another_version()

    def decide(self, decide: DecideRequest) -> DoneReply:
        """Answer a question; `DecideRequest.digest` is that of the document that was shown."""
        return self._ask(decide)

    def login(self, user: str, password: bytes) -> DoneReply:
        """Have a password checked; a wrong one raises ApprovalRefusedError."""
        return self._ask(LoginRequest(user, password))

    def _ask(self, packet: FromApprover) -> DoneReply:
        self._send(packet)
        match self._receive()[0]:
            case DoneReply() as done:
                return done
            case RefusedReply() as refused:
                raise ApprovalRefusedError(refused)
            case _:
                raise _another_version()

    def _send(self, packet: FromApprover) -> None:
        try:
            self._socket.send(approval_socket.encode_question(packet))
        except ApprovalProtocolError as error:
            raise McpwrapError(
                str(error),
                where=PATH,
                fix="leave the newline out",
                code="E-APPROVAL-NEWLINE",
            ) from error
        except OSError as error:
            raise _unreachable(error) from error

    def _receive(self) -> tuple[ToApprover, list[int]]:
        try:
            packet, fds = fd_passing.receive(self._socket, approval_socket.MAX_BYTES)
        except OSError as error:
            raise _unreachable(error) from error
        except DescriptorError as error:
            raise _another_version() from error
        if not packet:
            raise _unreachable(ConnectionResetError("the gate closed the connection"))
        try:
            return approval_socket.decode(packet), fds
        except msgspec.MsgspecError as error:
            fd_passing.close_all(fds)
            raise _another_version() from error


def _seen(digest: str, texts: list[bytes]) -> QuestionDetails:
    try:
        question, *before = [document.read(text) for text in texts]
    except ValueError as error:  # msgspec's are too
        raise _another_version() from error
    return QuestionDetails(digest, len(texts[0]), question, before[0] if before else None)


def _unreachable(error: OSError) -> McpwrapError:
    why = error.strerror or str(error) or "no answer"
    return McpwrapError(
        f"cannot reach the gate: {why}",
        where=PATH,
        fix="`systemctl status mcpwrap-gate.socket mcpwrap-gate` shows whether it runs",
        code="E-APPROVAL-NO-GATE",
    )


def _another_version() -> McpwrapError:
    return McpwrapError(
        "the gate's reply is of another version of mcpwrap",
        where=PATH,
        fix="`sudo systemctl restart mcpwrap-gate`",
        code="E-APPROVAL-VERSION",
    )
