"""Packet format of approvals, between the monitor and a session's process.

    child → monitor   `D` request a page for a document · `M` request the approval rules for a tool
                      · `Q` request an approval: the document is on that page · `C` stop holding a
                      request · `W` a preview of one is on that page · `I` answer from
                      the agent's own window
    monitor → child   `D` with the page · `M`, with the rules if there are any · `J` with an
                      `ApprovalResponse`

The outcome of a held request comes later, over a socket of its own.
"""

import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, assert_never

import msgspec

from mcpwrap.as_gate.ipc import packets
from mcpwrap.as_gate.ipc.packets import ChannelError
from mcpwrap.core.approval.approval_rule import ALL_EXACT, ApprovalRule
from mcpwrap.core.approval.client_forms import ClientIdentity, FormAnswer
from mcpwrap.core.approval.entry import UnaskedCause
from mcpwrap.core.gate.ports import ApprovalOutcome
from mcpwrap.core.policy.decision import AskingRules
from mcpwrap.linux.unix_socket import memfd

MAX_BYTES = 8 * 1024
MAX_TEXT_CHARS = 512
# Of the rules that ask, and of arguments, whose names an agent chooses: two lists of all questions
# fit into a socket's buffer.
MAX_RULES_BYTES, MAX_DECIDING_BYTES, MAX_EXACT_BYTES = 512, 192, 128
NO_ASKING_RULES = AskingRules()
_SEPARATOR = "\x1f"
_HEAD = struct.Struct("!IId")  # hold, flags of each kind of packet, seconds
_IN_CLIENT, _BY_FORM = 1, 2


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
    saved: str = ""  # id of an approval rule that covers it
    asking: AskingRules = NO_ASKING_RULES
    in_client: bool = False  # its rule accepts an answer in the agent's own window
    by_form: bool = False  # the agent's own window is going to ask


@dataclass(frozen=True, slots=True)
class ToolRulesRequest:
    """Request for the approval rules that may cover a call of a tool."""

    method: str
    target: str


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Notice that a request is not held any more."""

    hold: int
    will_resume: bool


@dataclass(frozen=True, slots=True)
class AnsweredInClient:
    """Answer of the agent's own window, by elicitation, and the client whose window it is."""

    hold: int
    answer: FormAnswer
    client: ClientIdentity


@dataclass(frozen=True, slots=True)
class PreviewRead:
    """Notice that the page of the session has the preview of a held request."""

    hold: int


FromChild = (
    PreviewRead | PageRequest | ToolRulesRequest | ApprovalQuery | Withdrawn | AnsweredInClient
)


def encode(packet: FromChild) -> bytes:
    """Return the bytes of a child's packet."""
    match packet:
        case PageRequest():
            return b"D"
        case ToolRulesRequest(method, target):
            return b"M" + "\0".join(map(_on_one_line, (method, target))).encode()
        case ApprovalQuery(hold, expires_s, in_client=in_client, by_form=by_form):
            flags = in_client * _IN_CLIENT | by_form * _BY_FORM
            return b"Q" + _HEAD.pack(hold, flags, expires_s) + _texts(packet).encode()
        case Withdrawn(hold, will_resume):
            return b"C" + _HEAD.pack(hold, will_resume, 0.0)
        case PreviewRead(hold):
            return b"W" + _HEAD.pack(hold, 0, 0.0)
        case AnsweredInClient(hold, answer, client):
            texts = map(_on_one_line, (answer, client.name, client.version))
            return b"I" + _HEAD.pack(hold, 0, 0.0) + "\0".join(texts).encode()
        case _:
            assert_never(packet)


def _texts(query: ApprovalQuery) -> str:
    parts = (query.method, query.target, query.rule, query.message, query.outer, query.saved)
    asking = listable(query.asking)
    lists = (asking.rules, asking.deciding, asking.exact)
    return "\0".join([*map(_on_one_line, parts), *map(_SEPARATOR.join, lists)])


def listable(asking: AskingRules) -> AskingRules:
    """Return lists that fit into a packet; without an argument's name none may be ticked."""
    rules = _fitting(asking.rules, MAX_RULES_BYTES)
    deciding = _fitting(asking.deciding, MAX_DECIDING_BYTES)
    exact = _fitting(asking.exact, MAX_EXACT_BYTES)
    is_whole = deciding == asking.deciding and exact == asking.exact
    return AskingRules(rules=rules, deciding=deciding, exact=exact if is_whole else (ALL_EXACT,))


def _fitting(names: Sequence[str], max_bytes: int) -> tuple[str, ...]:
    """Return the first names, but those that are not printable."""
    found: list[str] = []
    left = max_bytes
    for name in names:
        left -= len(name.encode(errors="replace")) + 1
        if left < 0:
            break
        found += [name] if name and name.isprintable() else []
    return tuple(found)


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
    if kind == b"M":
        return ToolRulesRequest(*_printable(untrusted[1:], 2))
    if kind not in {b"Q", b"C", b"I", b"W"}:
        return None
    if len(head) < _HEAD.size:
        raise ChannelError("a truncated packet")
    hold, flag, expires_s = _HEAD.unpack(head)
    if kind != b"Q":
        return _about_held(kind, hold, flag, rest)
    return _query(hold, flag, expires_s, rest)


def _about_held(
    kind: bytes, hold: int, flag: int, rest: bytes
) -> Withdrawn | PreviewRead | AnsweredInClient:
    if kind == b"C":
        return Withdrawn(hold, bool(flag))
    return PreviewRead(hold) if kind == b"W" else _form_answer(hold, rest)


def _query(hold: int, flag: int, expires_s: float, rest: bytes) -> ApprovalQuery:
    if not (0 < expires_s <= 86_400 or expires_s == inf):
        raise ChannelError("a malformed approval request")
    texts = _printable(rest, 9)
    method, target, rule, message, outer, saved = texts[:6]
    rules, deciding, exact = map(_names, texts[6:])
    asking = AskingRules(rules=rules, deciding=deciding, exact=exact)
    return ApprovalQuery(
        hold,
        expires_s,
        method,
        target,
        rule,
        message,
        outer,
        saved,
        asking,
        bool(flag & _IN_CLIENT),
        bool(flag & _BY_FORM),
    )


def _form_answer(hold: int, untrusted: bytes) -> AnsweredInClient:
    answer, name, version = _printable(untrusted, 3)
    try:
        return AnsweredInClient(hold, FormAnswer(answer), ClientIdentity(name, version))
    except ValueError as error:
        raise ChannelError("an unknown answer of a form") from error


def _printable(untrusted: bytes, count: int) -> list[str]:
    texts = untrusted.decode(errors="replace").split("\0")
    if len(texts) != count or not all(map(_is_short, texts)):
        raise ChannelError("a malformed approval request")
    return texts


def _is_short(text: str) -> bool:
    return len(text) <= MAX_TEXT_CHARS and text.replace(_SEPARATOR, "").isprintable()


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(_SEPARATOR)) if text else ()


class ApprovalResponse(msgspec.Struct, frozen=True, array_like=True):
    """Monitor's answer to `ApprovalQuery`, which a child trusts."""

    kind: Literal["Y", "W", "Z"]  # approved, pending, refused
    text: str  # the id, or the reason of a refusal
    by: str = ""
    shown: str = ""  # digest of what was shown, if that was another document
    cause: UnaskedCause = "nobody"  # of a refusal
    remedy: str = ""  # for the agent's user
    left_s: float | None = None  # until a pending question expires; None if it does not


def answer(child: socket.socket, answer: ApprovalResponse) -> None:
    """Send the monitor's answer to `ApprovalQuery`, without blocking.

    Raises:
        OSError: the child has ended, or does not read.
    """
    child.send(b"J" + msgspec.json.encode(answer), socket.MSG_DONTWAIT)


def decode_answer(packet: bytes) -> ApprovalResponse:
    """Return the packet, which is trusted."""
    return _ANSWER.decode(packet[1:])


def send_rules(child: socket.socket, rules: Sequence[ApprovalRule]) -> None:
    """Send the answer to `ToolRulesRequest`, without blocking.

    Raises:
        OSError: the child has ended, or does not read; or there is no memory for the rules.
    """
    if not rules:
        child.send(b"M", socket.MSG_DONTWAIT)
        return
    fd = memfd.sealed("approval rules", msgspec.json.encode(rules))
    try:
        packets.send_with(child, b"M", fd)
    finally:
        os.close(fd)


def decode_rules(text: bytes) -> list[ApprovalRule]:
    """Return the rules that the monitor has sent."""
    return _RULES.decode(text)


def send_outcome(child: socket.socket, outcome: ApprovalOutcome | None) -> None:
    """Send the outcome of a held request, without blocking; None announces a new held request."""
    child.send(msgspec.json.encode(outcome), socket.MSG_DONTWAIT)


def decode_outcome(packet: bytes) -> ApprovalOutcome | None:
    """Return the packet, which is trusted."""
    return _OUTCOME.decode(packet)


_RULES: msgspec.json.Decoder[list[ApprovalRule]] = msgspec.json.Decoder(list[ApprovalRule])
_ANSWER = msgspec.json.Decoder(ApprovalResponse)
_OUTCOME: msgspec.json.Decoder[ApprovalOutcome | None] = msgspec.json.Decoder(
    ApprovalOutcome | None
)
