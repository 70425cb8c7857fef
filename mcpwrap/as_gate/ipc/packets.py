"""Packet format between the monitor and a session's process.

    child → monitor   `N` name of the server, and the agent if a listener asked, once · `S` server
                      started, with the wrapper's session and its project if it sees one · `F`
                      start failed, and why · `A` request to call a tool, with a digest of it and
                      its arguments · `T` outcome of a call, with digests of the call and of its
                      answer · `R` part of the audit is full
    monitor → child   `G` call admitted · `H` call held back: the kind of limit, for how long, and
                      why · `O` with a file: the session is in the audit, under this name · `B` no
                      room, and why · `R` with a file: the next part · `X` audit cannot be written ·
                      `P` with a descriptor: the policy has changed

A SOCK_SEQPACKET pair for each child: a packet is a message, and the socket identifies the sender.
An invalid packet raises ChannelError, in the other modules of this room too.
"""

import array
import re
import socket
from dataclasses import dataclass
from typing import assert_never, cast

from mcpwrap.core.gate.call_outcomes import DIGEST_BYTES
from mcpwrap.core.policy.decision import LimitExceeded, LimitKind
from mcpwrap.core.project import MAX_PATH_CHARS

MAX_BYTES = 32 * 1024
NO_DIGEST = bytes(DIGEST_BYTES)
_ID_CHARS = 16
_SEEN = re.compile(rf"[0-9a-f]{{{_ID_CHARS}}}/[^\0]{{1,{MAX_PATH_CHARS - 1}}}")
_MAX_TOOL_CHARS = 512  # longer names are cut, and count as one tool if they are then equal


class ChannelError(ValueError):
    """Packet that the other process never sends, unless an attacker controls it."""


@dataclass(frozen=True, slots=True)
class SessionNamed:
    """Name of the server whose session this child serves."""

    server: str
    claim: str = ""  # agent's UID or login, if it is not the peer's own; see `agent_identity`


@dataclass(frozen=True, slots=True)
class StartSucceeded:
    """Report that the server has started, and which project it sees."""

    wrapper_id: str = ""  # of the session at the wrapper; "" without a project
    project: str = ""


@dataclass(frozen=True, slots=True)
class StartFailed:
    """Report that the server could not be started."""

    why: str


@dataclass(frozen=True, slots=True)
class CallLimitRequest:
    """Rate limit check of a call that the policy allows."""

    tool: str
    digest: bytes  # of it and its arguments; zeros where repeats are not counted


@dataclass(frozen=True, slots=True)
class CallFinished:
    """Outcome of a call that has ended."""

    tool: str
    failed: bool
    digest: bytes = NO_DIGEST  # as in `CallLimitRequest`
    answer_digest: bytes = NO_DIGEST


@dataclass(frozen=True, slots=True)
class PartIsFull:
    """Request for the next file of this session's audit."""


FromChild = (
    SessionNamed | StartSucceeded | StartFailed | CallLimitRequest | CallFinished | PartIsFull
)


@dataclass(frozen=True, slots=True)
class AuditFileHandle:
    """Name of a session in the audit, and its file."""

    session: str
    fd: int


def encode(packet: FromChild) -> bytes:
    """Return the bytes of a child's packet."""
    match packet:
        case SessionNamed(server, claim):
            return b"N" + f"{server}\0{claim}".encode()
        case StartSucceeded(wrapper_id, project):
            return b"S" + (f"{wrapper_id}{project}".encode() if project else b"")
        case StartFailed(why):
            return (b"F" + why.encode())[:MAX_BYTES]
        case CallLimitRequest(tool, digest):
            return b"A" + digest + tool[:_MAX_TOOL_CHARS].encode()
        case PartIsFull():
            return b"R"
        case CallFinished(tool, failed, digest, answer):
            flag = b"1" if failed else b"0"
            return b"T" + flag + digest + answer + tool[:_MAX_TOOL_CHARS].encode()
        case _:
            assert_never(packet)


def decode(untrusted: bytes) -> FromChild:
    """Return a child's packet.

    Raises:
        ChannelError: it is malformed.
    """
    kind, rest = untrusted[:1], untrusted[1:]
    if kind == b"N":
        server, _, claim = _text(rest).partition("\0")
        return SessionNamed(server, claim)
    if kind == b"S":
        return _started(_text(rest))
    if untrusted == b"R":
        return PartIsFull()
    if kind == b"F":
        return StartFailed(rest.decode(errors="replace"))
    if kind == b"A" and len(rest) >= DIGEST_BYTES:
        return CallLimitRequest(_text(rest[DIGEST_BYTES:]), rest[:DIGEST_BYTES])
    if kind == b"T" and rest[:1] in {b"0", b"1"} and len(rest) > 2 * DIGEST_BYTES:
        digest, answer = rest[1 : 1 + DIGEST_BYTES], rest[1 + DIGEST_BYTES : 1 + 2 * DIGEST_BYTES]
        return CallFinished(_text(rest[1 + 2 * DIGEST_BYTES :]), rest[:1] == b"1", digest, answer)
    raise ChannelError("a packet of no known kind")


def _started(untrusted: str) -> StartSucceeded:
    if not untrusted:
        return StartSucceeded()
    if not _SEEN.fullmatch(untrusted):
        raise ChannelError("a malformed report of a start")
    return StartSucceeded(untrusted[:_ID_CHARS], untrusted[_ID_CHARS:])


def answer(child: socket.socket, held: LimitExceeded | None) -> None:
    """Send the monitor's answer to `CallLimitRequest`, without blocking.

    Raises:
        OSError: the child has ended, or does not read.
    """
    text = f"H{held.kind} {held.retry_after_s!r} {held.why}" if held else "G"
    child.send(text.encode(), socket.MSG_DONTWAIT)


def hand_page(child: socket.socket, fd: int) -> None:
    """Send the answer to `PageRequest`, without blocking."""
    send_with(child, b"D", fd)


def refuse_page(child: socket.socket) -> None:
    """Refuse a `PageRequest`."""
    child.send(b"D", socket.MSG_DONTWAIT)


def hand_out(child: socket.socket, digest: str, policy_fd: int) -> None:
    """Send a policy, without blocking."""
    send_with(child, b"P" + digest.encode(), policy_fd)


def open_audit(child: socket.socket, opening: AuditFileHandle) -> None:
    """Send the answer to `SessionNamed`, without blocking."""
    send_with(child, b"O" + opening.session.encode(), opening.fd)


def next_part(child: socket.socket, fd: int) -> None:
    """Send the answer to `PartIsFull`, without blocking."""
    send_with(child, b"R", fd)


def refuse_audit(child: socket.socket) -> None:
    """Refuse a `SessionNamed` or `PartIsFull`: the audit cannot be written."""
    child.send(b"X", socket.MSG_DONTWAIT)


def refuse_more(child: socket.socket, why: str) -> None:
    """Refuse a `SessionNamed`: a limit on sessions is reached."""
    child.send(b"B" + why.encode(), socket.MSG_DONTWAIT)


def send_with(child: socket.socket, packet: bytes, fd: int) -> None:
    """Send a packet with a descriptor, without blocking."""
    rights = array.array("i", [fd])
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
    child.sendmsg([packet], ancillary, socket.MSG_DONTWAIT)


def decode_answer(answer: bytes) -> LimitExceeded | None:
    """Return the monitor's answer, which is trusted."""
    if answer == b"G":
        return None
    kind, retry_after_s, why = answer[1:].decode().split(" ", 2)
    return LimitExceeded(why, float(retry_after_s), cast(LimitKind, kind))


def _text(untrusted: bytes) -> str:
    try:
        return untrusted.decode()
    except UnicodeDecodeError as error:
        raise ChannelError("a packet that is not UTF-8") from error
