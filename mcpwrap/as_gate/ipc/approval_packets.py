"""Packet format of approvals, between the monitor and a session's process.

    child → monitor   `D` request a page for a document · `Q` request an approval: the document is
                      on that page · `C` stop holding a request · `I` answer from the agent's own
                      window
    monitor → child   `D` with the page · `J` with an `ApprovalResponse`

The outcome of a held request comes later, over a socket of its own.
"""

import socket
import struct
from dataclasses import dataclass
from typing import Literal, assert_never

import msgspec

from mcpwrap.as_gate.ipc.packets import ChannelError
from mcpwrap.core.approval.entry import UnaskedCause
from mcpwrap.core.gate.ports import ApprovalOutcome

MAX_BYTES = 8 * 1024
MAX_TEXT_CHARS = 512
_HEAD = struct.Struct("!IId")  # hold, a flag of each kind of packet, seconds


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Request for a page to write a document to."""


@dataclass(frozen=True, slots=True)
class ApprovalQuery:
    """Request for an approval. Texts are printable, and without a NUL."""

    hold: int
    expires_s: float
    method: str
    target: str
    rule: str
    message: str
    outer: str = ""  # digest of the document for the same call of the hub
    in_client: bool = False  # its rule accepts an answer in the agent's own window


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Notice that a request is not held any more."""

    hold: int
    will_resume: bool


@dataclass(frozen=True, slots=True)
class AnsweredInClient:
    """Answer that the user gave by elicitation, in the agent's own window."""

    hold: int
    approves: bool


FromChild = PageRequest | ApprovalQuery | Withdrawn | AnsweredInClient


def encode(packet: FromChild) -> bytes:
    """Return the bytes of a child's packet."""
    match packet:
        case PageRequest():
            return b"D"
        case ApprovalQuery(hold, expires_s, method, target, rule, message, outer, in_client):
            parts = (method, target, rule, message, outer)
            texts = "\0".join(_on_one_line(text) for text in parts)
            return b"Q" + _HEAD.pack(hold, in_client, expires_s) + texts.encode()
        case Withdrawn(hold, will_resume):
            return b"C" + _HEAD.pack(hold, will_resume, 0.0)
        case AnsweredInClient(hold, approves):
            return b"I" + _HEAD.pack(hold, approves, 0.0)
        case _:
            assert_never(packet)


def _on_one_line(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text[:MAX_TEXT_CHARS])


def decode(untrusted: bytes) -> FromChild | None:
    """Return a child's packet; None if it is not about approvals.

    Raises:
        ChannelError: it is malformed.
    """
    kind, head, rest = untrusted[:1], untrusted[1 : 1 + _HEAD.size], untrusted[1 + _HEAD.size :]
    if kind == b"D":
        return PageRequest()
    if kind not in {b"Q", b"C", b"I"}:
        return None
    if len(head) < _HEAD.size:
        raise ChannelError("a truncated packet")
    hold, flag, expires_s = _HEAD.unpack(head)
    if kind == b"C":
        return Withdrawn(hold, bool(flag))
    if kind == b"I":
        return AnsweredInClient(hold, bool(flag))
    texts = rest.decode(errors="replace").split("\0")
    are_short = all(len(text) <= MAX_TEXT_CHARS and text.isprintable() for text in texts)
    if len(texts) != 5 or not are_short or not 0 < expires_s <= 86_400:
        raise ChannelError("a malformed approval request")
    method, target, rule, message, outer = texts
    return ApprovalQuery(hold, expires_s, method, target, rule, message, outer, bool(flag))


class ApprovalResponse(msgspec.Struct, frozen=True, array_like=True):
    """Monitor's answer to `ApprovalQuery`, which a child trusts."""

    kind: Literal["Y", "W", "Z"]  # approved, pending, refused
    text: str  # the id, or the reason of a refusal
    by: str = ""
    shown: str = ""  # digest of what was shown, if that was another document
    cause: UnaskedCause = "nobody"  # of a refusal
    remedy: str = ""  # for the agent's user


def answer(child: socket.socket, answer: ApprovalResponse) -> None:
    """Send the monitor's answer to `ApprovalQuery`, without blocking.

    Raises:
        OSError: the child has ended, or does not read.
    """
    child.send(b"J" + msgspec.json.encode(answer), socket.MSG_DONTWAIT)


def decode_answer(packet: bytes) -> ApprovalResponse:
    """Return the packet, which is trusted."""
    return _ANSWER.decode(packet[1:])


def send_outcome(child: socket.socket, outcome: ApprovalOutcome | None) -> None:
    """Send the outcome of a held request, without blocking; None announces a new held request."""
    child.send(msgspec.json.encode(outcome), socket.MSG_DONTWAIT)


def decode_outcome(packet: bytes) -> ApprovalOutcome | None:
    """Return the packet, which is trusted."""
    return _OUTCOME.decode(packet)


_ANSWER = msgspec.json.Decoder(ApprovalResponse)
_OUTCOME: msgspec.json.Decoder[ApprovalOutcome | None] = msgspec.json.Decoder(
    ApprovalOutcome | None
)
