"""Packet format between the monitor and a session's process.

    child → monitor   `N` name of the server, and the agent if a listener asked, once · `S` server
                      started · `F` start failed, and why · `A` request to call a tool, with a
                      digest of the arguments · `T` result of a call · `R` part of the audit is full
    monitor → child   `G` call admitted · `H` call held back, for how long, and why · `O` with a
                      file: the session is in the audit, under this name · `B` no room, and why ·
                      `R` with a file: the next part · `X` audit cannot be written · `P` with a
                      descriptor: the policy has changed

A SOCK_SEQPACKET pair for each child: a packet is a message, and the socket identifies the sender. A
packet of either process that is not valid is a ChannelError, also where the format is another's.
"""

import array
import socket
from dataclasses import dataclass
from typing import assert_never

from mcpwrap.core.policy.decision import LimitExceeded

MAX_BYTES = 8 * 1024
DIGEST_BYTES = 16
_MAX_TOOL_CHARS = 512  # a longer name is that of no tool, and all such count as one


class ChannelError(ValueError):
    """A packet that the other side cannot have sent, unless it was taken over."""


@dataclass(frozen=True, slots=True)
class SessionNamed:
    """Name of the server whose session this child serves."""

    server: str
    claim: str = ""  # for whom, if it is not who connected; see `agents`


@dataclass(frozen=True, slots=True)
class StartSucceeded:
    """Report that the server has started."""


@dataclass(frozen=True, slots=True)
class StartFailed:
    """Report that the server could not be started."""

    why: str


@dataclass(frozen=True, slots=True)
class CallLimitRequest:
    """Rate limit check of a call that the policy allows."""

    tool: str
    digest: bytes  # of its arguments


@dataclass(frozen=True, slots=True)
class CallFinished:
    """Result of a call that has ended."""

    tool: str
    failed: bool


@dataclass(frozen=True, slots=True)
class PartIsFull:
    """Request for another file, in which the audit of this session is to go on."""


FromChild = (
    SessionNamed | StartSucceeded | StartFailed | CallLimitRequest | CallFinished | PartIsFull
)


@dataclass(frozen=True, slots=True)
class AuditFileHandle:
    """Audit entry of a session: its name in the audit, and its file."""

    session: str
    fd: int


def encode(packet: FromChild) -> bytes:
    """Return the bytes of a packet of a child's."""
    match packet:
        case SessionNamed(server, claim):
            return b"N" + f"{server}\0{claim}".encode()
        case StartSucceeded():
            return b"S"
        case StartFailed(why):
            return (b"F" + why.encode())[:MAX_BYTES]
        case CallLimitRequest(tool, digest):
            return b"A" + digest + tool[:_MAX_TOOL_CHARS].encode()
        case PartIsFull():
            return b"R"
        case CallFinished(tool, failed):
            return b"T" + (b"1" if failed else b"0") + tool[:_MAX_TOOL_CHARS].encode()
        case _:
            assert_never(packet)


def decode(untrusted: bytes) -> FromChild:
    """Return a child's packet.

    Raises:
        ChannelError: it is none.
    """
    kind, rest = untrusted[:1], untrusted[1:]
    if kind == b"N":
        server, _, claim = _text(rest).partition("\0")
        return SessionNamed(server, claim)
    if untrusted == b"S":
        return StartSucceeded()
    if untrusted == b"R":
        return PartIsFull()
    if kind == b"F":
        return StartFailed(rest.decode(errors="replace"))
    if kind == b"A" and len(rest) >= DIGEST_BYTES:
        return CallLimitRequest(_text(rest[DIGEST_BYTES:]), rest[:DIGEST_BYTES])
    if kind == b"T" and rest[:1] in {b"0", b"1"}:
        return CallFinished(_text(rest[1:]), rest[:1] == b"1")
    raise ChannelError("a packet of no known kind")


def answer(child: socket.socket, held: LimitExceeded | None) -> None:
    """Send the monitor's answer to `CallLimitRequest`, without ever waiting.

    Raises:
        OSError: the child is gone, or does not read.
    """
    text = f"H{held.retry_after_s!r} {held.why}" if held else "G"
    child.send(text.encode(), socket.MSG_DONTWAIT)


def hand_page(child: socket.socket, fd: int) -> None:
    """Send the answer to `PageRequest`, in the same way."""
    _send_with(child, b"D", fd)


def refuse_page(child: socket.socket) -> None:
    """Answer it: there is none."""
    child.send(b"D", socket.MSG_DONTWAIT)


def hand_out(child: socket.socket, digest: str, policy_fd: int) -> None:
    """Send a policy, in the same way."""
    _send_with(child, b"P" + digest.encode(), policy_fd)


def open_audit(child: socket.socket, opening: AuditFileHandle) -> None:
    """Send the answer to `SessionNamed`, in the same way."""
    _send_with(child, b"O" + opening.session.encode(), opening.fd)


def next_part(child: socket.socket, fd: int) -> None:
    """Send the answer to `PartIsFull`, in the same way."""
    _send_with(child, b"R", fd)


def refuse_audit(child: socket.socket) -> None:
    """Answer either of them: it cannot be written."""
    child.send(b"X", socket.MSG_DONTWAIT)


def refuse_more(child: socket.socket, why: str) -> None:
    """Answer `SessionNamed`: there is no room for one more."""
    child.send(b"B" + why.encode(), socket.MSG_DONTWAIT)


def _send_with(child: socket.socket, packet: bytes, fd: int) -> None:
    rights = array.array("i", [fd])
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
    child.sendmsg([packet], ancillary, socket.MSG_DONTWAIT)


def decode_answer(answer: bytes) -> LimitExceeded | None:
    """Return what the monitor answered; it is trusted."""
    if answer == b"G":
        return None
    retry_after_s, _, why = answer[1:].decode().partition(" ")
    return LimitExceeded(why, float(retry_after_s))


def _text(untrusted: bytes) -> str:
    try:
        return untrusted.decode()
    except UnicodeDecodeError as error:
        raise ChannelError("a packet is UTF-8") from error
