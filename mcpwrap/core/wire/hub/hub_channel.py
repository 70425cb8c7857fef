"""Channel between a hub's program and its supervisor: a SOCK_SEQPACKET pair, one message a packet.

    hub → supervisor   `O` name: open a session of this member · `L` text: line for the journal
    supervisor → hub   `F` name, with three descriptors: the control socket of the session at the
                       gate, and the ends of two pipes, to the member and from it ·
                       `!` name, NUL, reason: there is no session

The control socket is as a stub's (`session_socket`), from the gate's first answer on: the
supervisor has sent the hello, and does not wait.
"""

from dataclasses import dataclass
from typing import assert_never

CHANNEL_FD, CATALOGUE_FD = 4, 5  # in the hub's program; 3 is taken until execve(2)
VARIABLE = "MCPWRAP_HUB"  # `HubSpec` of its server, as JSON
MAX_PACKET_BYTES = 4096
_MAX_TEXT_CHARS = 1000


class HubChannelError(ValueError):
    """Packet that the other side does not send."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Request of the hub for a session of a member."""

    member: str


@dataclass(frozen=True, slots=True)
class JournalLine:
    """Line of the hub for the journal of its wrapper."""

    text: str


@dataclass(frozen=True, slots=True)
class SessionOpening:
    """Session of a member that the gate was asked for; three descriptors come with it."""

    member: str


@dataclass(frozen=True, slots=True)
class NoSession:
    """Reason why there is no session of a member."""

    member: str
    why: str


FromHub = OpenSession | JournalLine
ToHub = SessionOpening | NoSession


def encode(packet: FromHub | ToHub) -> bytes:
    """Return the bytes of a packet."""
    match packet:
        case OpenSession(member):
            return b"O" + member.encode()
        case JournalLine(text):
            return b"L" + text[:_MAX_TEXT_CHARS].encode()
        case SessionOpening(member):
            return b"F" + member.encode()
        case NoSession(member, why):
            return b"!" + f"{member}\0{why[:_MAX_TEXT_CHARS]}".encode()
        case _:
            assert_never(packet)


def decode_from_hub(untrusted: bytes) -> FromHub:
    """Parse a packet of a hub, whose program an attacker may control.

    Raises:
        HubChannelError: it is malformed.
    """
    kind, text = untrusted[:1], untrusted[1:].decode(errors="replace")
    if kind == b"O":
        return OpenSession(text)
    if kind == b"L":
        return JournalLine(text)
    raise HubChannelError("a packet of an unknown kind")


def decode_to_hub(packet: bytes) -> ToHub:
    """Parse a packet of the supervisor.

    Raises:
        HubChannelError: it is malformed.
    """
    kind, text = packet[:1], packet[1:].decode(errors="replace")
    if kind == b"F":
        return SessionOpening(text)
    if kind == b"!":
        member, _, why = text.partition("\0")
        return NoSession(member, why)
    raise HubChannelError("a packet of an unknown kind")
