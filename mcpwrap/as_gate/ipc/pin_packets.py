"""Packet format of pins, between the monitor and a session's process.

child → monitor   `E` request a page for definitions that the server listed · `U` that page is
                  complete, and whether the session waits for the answer
monitor → child   `D` with the page, or without · `U` with a descriptor, a `PinsView`: it was
                  recorded · `U` and why it was not · `Y` with a `PinsView`, at any time: the pins
                  of the server have changed

The page holds an `OfferedDefinitions` (`core/pins/acceptance.py`), which the monitor does not
parse. After `Y` the doorbell is set, and the socket of outcomes wakes the session.
"""

import socket
from dataclasses import dataclass
from typing import assert_never

from mcpwrap.as_gate.ipc import packets
from mcpwrap.as_gate.ipc.packets import ChannelError

_MAX_WHY_BYTES = 1024


@dataclass(frozen=True, slots=True)
class OfferPageRequest:
    """Request for a page to write definitions to."""


@dataclass(frozen=True, slots=True)
class DefinitionsOffered:
    """Report that the page is complete."""

    waits: bool  # the session waits for the answer, as at first use


FromChild = OfferPageRequest | DefinitionsOffered


def encode(packet: FromChild) -> bytes:
    """Return the bytes of a child's packet."""
    match packet:
        case OfferPageRequest():
            return b"E"
        case DefinitionsOffered(waits):
            return b"U1" if waits else b"U0"
        case _:
            assert_never(packet)


def decode(untrusted: bytes) -> FromChild | None:
    """Return a child's packet; None if it is not about pins.

    Raises:
        ChannelError: it is malformed.
    """
    if untrusted[:1] not in {b"E", b"U"}:
        return None
    match untrusted:
        case b"E":
            return OfferPageRequest()
        case b"U0" | b"U1":
            return DefinitionsOffered(waits=untrusted == b"U1")
        case _:
            raise ChannelError("a malformed packet about definitions")


def answer_recorded(child: socket.socket, view_fd: int) -> None:
    """Send the answer to a `DefinitionsOffered` that waits, without blocking.

    Raises:
        OSError: the child has ended, or does not read.
    """
    packets.send_with(child, b"U", view_fd)


def answer_not_recorded(child: socket.socket, why: str) -> None:
    """Send the other answer to a `DefinitionsOffered` that waits, without blocking.

    Raises:
        OSError: the child has ended, or does not read.
    """
    text = why.encode(errors="replace")[:_MAX_WHY_BYTES].decode(errors="ignore")
    child.send(b"U" + text.encode(), socket.MSG_DONTWAIT)


def push_view(child: socket.socket, view_fd: int) -> None:
    """Send changed pins, without blocking.

    Raises:
        OSError: the child has ended, or does not read.
    """
    packets.send_with(child, b"Y", view_fd)
