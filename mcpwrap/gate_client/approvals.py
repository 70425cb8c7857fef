"""Client of the gate's approval socket `/run/mcpwrap/approve.sock`: lists, reports, decisions."""

import socket
from typing import Self

import msgspec
from msgspec.structs import replace

from mcpwrap.core.approval import document
from mcpwrap.core.approval.approval_rule import ApprovalRule
from mcpwrap.core.approval.document import Question
from mcpwrap.core.approval.views.preview import Preview
from mcpwrap.core.approval.views.preview import decode as decode_preview
from mcpwrap.core.pins import pins_report
from mcpwrap.core.pins.pins_report import PinsReport
from mcpwrap.core.policy import rules
from mcpwrap.core.policy.rules import Policy
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
    PinsReply,
    PinsRequest,
    RefusedReply,
    ResetPinsRequest,
    RevokeRequest,
    RulesReply,
    RulesRequest,
    SavedRulesReply,
    SavedRulesRequest,
    ShowRequest,
    ToApprover,
    WatchRequest,
)
from mcpwrap.errors import McpwrapError, split_name
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
    preview: Preview | None = None


class ApprovalRefusedError(McpwrapError):
    """Refusal by the gate; `reason` is the code of its `RefusedReply`."""

    def __init__(self, refused: RefusedReply) -> None:
        code, fix = _NAME_AND_FIX[refused.code]
        problem, code = split_name(refused.why, code=code)
        fix = _FIX_BY_NAME.get(code, fix)
        super().__init__(problem, where="the gate", fix=fix, code=code)
        self.reason = refused.code

    @property
    def is_unknown_name(self) -> bool:
        """Return whether the gate knows no request or server of that name."""
        return self.code == _NAME_AND_FIX["gone"][0]


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


_FIX_BY_NAME = {  # of refusals that have a name of their own
    "E-PINS-DAMAGED": "restore the file; `sudo mcpwrap tools reset NAME` begins without one",
    "E-PINS-FINDING": "read what was found; `mcpwrap tools accept NAME --finding` accepts it",
    "E-PINS-OPTION": "repeat the command without `--for`, `--session`, `--times`, `--stop-server`",
    "E-APPROVAL-RULE": "repeat the command without that, or approve this request alone",
    "E-APPROVAL-RULE-LIMIT": "`mcpwrap approvals rules` lists them; revoke some",
    "E-APPROVAL-RULE-NOT-STORED": "`journalctl -u mcpwrap-gate` shows why; then repeat the command",
    "E-APPROVAL-NO-RULE": "`mcpwrap approvals rules` lists the rules",
    "E-SESSION-POLICY": "an administrator corrects the policy and reloads the gate",
    "E-POLICY-FILE-MISSING": "an administrator restores the file, or runs `mcpwrap apply`",
    "E-PINS-NOT-WRITTEN": "`journalctl -u mcpwrap-gate` shows why; then repeat the command",
}


class ApprovalConnection:
    """Connection to the approval socket. As a context manager it is closed at the end."""

    def __init__(self, path: str = PATH, timeout_s: float = _TIMEOUT_S) -> None:
        """Connect. `timeout_s` is that of each reply.

        Raises:
            McpwrapError: the gate does not listen.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(timeout_s)
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
        packet, texts = self._receive_texts()
        match packet:
            case DocumentReply(digest=digest) if texts and document.digest(texts[0]) == digest:
                return _seen(packet, texts)
            case RefusedReply() as refused:
                raise ApprovalRefusedError(refused)
            case _:
                raise _another_version()

    def pins(self, server: str) -> PinsReport:
        """Return the report on the pins of a server."""
        self._send(PinsRequest(server))
        packet, texts = self._receive_texts()
        match packet:
            case PinsReply(may=may) if texts:
                return replace(_report(texts[0]), may=may)
            case RefusedReply() as refused:
                raise ApprovalRefusedError(refused)
            case _:
                raise _another_version()

    def rules(self, server: str) -> Policy:
        """Return the part of the policy for a server, with the default policy's rules for it."""
        self._send(RulesRequest(server))
        packet, texts = self._receive_texts()
        match packet:
            case RulesReply() if texts:
                return _policy(texts[0])
            case RefusedReply() as refused:
                raise ApprovalRefusedError(refused)
            case _:
                raise _another_version()

    def saved_rules(self) -> list[ApprovalRule]:
        """Return the approval rules of the agents that the account may see, oldest first."""
        self._send(SavedRulesRequest())
        packet, texts = self._receive_texts()
        match packet:
            case SavedRulesReply() if texts:
                return _approval_rules(texts[0])
            case RefusedReply() as refused:
                raise ApprovalRefusedError(refused)
            case _:
                raise _another_version()

    def revoke(self, id_: str) -> DoneReply:
        """Remove an approval rule."""
        return self._ask(RevokeRequest(id_))

    def reset_pins(self, server: str) -> DoneReply:
        """Begin the pins of a server anew, as root."""
        return self._ask(ResetPinsRequest(server))

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

    def _receive_texts(self) -> tuple[ToApprover, list[bytes]]:
        packet, fds = self._receive()
        try:
            return packet, [memfd.read_all(fd) for fd in fds]
        finally:
            fd_passing.close_all(fds)

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


def _seen(reply: DocumentReply, texts: list[bytes]) -> QuestionDetails:
    shown, *others = texts
    try:
        preview = decode_preview(others.pop(0)) if reply.has_preview and others else None
        question, *before = [document.read(text) for text in (shown, *others)]
    except ValueError as error:  # msgspec's are too
        raise _another_version() from error
    last = before[0] if before else None
    return QuestionDetails(reply.digest, len(shown), question, last, preview)


def _report(text: bytes) -> PinsReport:
    try:
        return pins_report.decode(text)
    except msgspec.MsgspecError as error:
        raise _another_version() from error


def _policy(text: bytes) -> Policy:
    try:
        return rules.decode(text)
    except msgspec.MsgspecError as error:
        raise _another_version() from error


def _approval_rules(text: bytes) -> list[ApprovalRule]:
    try:
        return msgspec.json.decode(text, type=list[ApprovalRule])
    except msgspec.MsgspecError as error:
        raise _another_version() from error


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
