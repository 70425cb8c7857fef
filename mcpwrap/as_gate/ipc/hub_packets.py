"""Packet format of hubs, between the monitor and a session's process.

child → monitor   `V` id of a hub's session: request for its agent · `L` request for a file, to
                  write the server's definitions to · `K` that file is complete
monitor → child   `V` with an `OuterAgent`, or nothing · `D` with the file, or without
"""

import socket
from dataclasses import dataclass
from typing import assert_never

import msgspec

from mcpwrap.as_gate.agent_identity import Door
from mcpwrap.as_gate.ipc.packets import ChannelError

_MAX_ID_CHARS = 64


@dataclass(frozen=True, slots=True)
class OuterQuery:
    """Request for the agent of a hub's session, by the session's id."""

    session: str


@dataclass(frozen=True, slots=True)
class DefinitionsRequest:
    """Request for a file, to write the server's definitions to."""


@dataclass(frozen=True, slots=True)
class DefinitionsWritten:
    """Report that the file is complete."""


FromChild = OuterQuery | DefinitionsRequest | DefinitionsWritten


class OuterAgent(msgspec.Struct, frozen=True):
    """Agent of a hub's session, as the kernel and the access list gave it to the gate."""

    hub: str
    uid: int
    gids: frozenset[int]
    door: Door


def encode(packet: FromChild) -> bytes:
    """Return the bytes of a child's packet."""
    match packet:
        case OuterQuery(session):
            return b"V" + session[:_MAX_ID_CHARS].encode()
        case DefinitionsRequest():
            return b"L"
        case DefinitionsWritten():
            return b"K"
        case _:
            assert_never(packet)


def decode(untrusted: bytes) -> FromChild | None:
    """Return a child's packet; None if it is not about hubs.

    Raises:
        ChannelError: it is malformed.
    """
    kind, rest = untrusted[:1], untrusted[1:]
    if kind == b"V":
        return OuterQuery(rest.decode(errors="replace"))
    if kind not in {b"L", b"K"}:
        return None
    if rest:
        raise ChannelError("a packet with more than its kind")
    return DefinitionsRequest() if kind == b"L" else DefinitionsWritten()


def describe_outer(child: socket.socket, outer: OuterAgent | None) -> None:
    """Send the answer to `OuterQuery`, without blocking.

    Raises:
        OSError: the child has ended, or does not read.
    """
    text = b"" if outer is None else msgspec.json.encode(outer)
    child.send(b"V" + text, socket.MSG_DONTWAIT)


def decode_outer(answer: bytes) -> OuterAgent | None:
    """Return the monitor's answer to `OuterQuery`, which a child trusts."""
    return msgspec.json.decode(answer[1:], type=OuterAgent) if answer[1:] else None
