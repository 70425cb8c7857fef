"""Files with the pins of a server: what was accepted, and what is held back.

The first line of a file is the SHA-256 of the rest, so that a damaged file is not taken for another
version. The files hold the definitions themselves: a later version of mcpwrap can compare more of
them, and need not ask again.
"""

import hashlib
from typing import TypeVar

import msgspec

from mcpwrap.core.pins.definitions import Definition, DefinitionKey, Kind

FOLDER = "/var/lib/mcpwrap/pins"
MAX_PINS_BYTES = 8 * 1024 * 1024
MAX_HELD_BYTES = 1024 * 1024
FORMAT = 1
T = TypeVar("T", bound=msgspec.Struct)


class DamagedPinsError(ValueError):
    """Content that mcpwrap did not write, or that was changed since."""


class AcceptedDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Definition that was accepted. Times are seconds since 1970."""

    kind: Kind
    name: str
    definition: msgspec.Raw  # canonical JSON
    at: float
    by: str = ""  # the approver and the channel; "" at first use
    version: str = ""  # that the server reported then
    with_findings: bool = False  # the findings in it were accepted too

    def canonical(self) -> Definition:
        """Return the definition."""
        return Definition(DefinitionKey(self.kind, self.name), bytes(self.definition))


class RejectedDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """Definition that a person has rejected."""

    kind: Kind
    name: str
    digest: str
    at: float
    by: str


class BegunKind(msgspec.Struct, frozen=True, kw_only=True):
    """Kind that a session has listed first, by its id in the audit."""

    kind: Kind
    session: str
    is_complete: bool  # that session got the last page: nothing more is accepted at first use


class ServerPins(msgspec.Struct, frozen=True, kw_only=True):
    """Pins of one server."""

    format: int = FORMAT
    accepted: tuple[AcceptedDefinition, ...] = ()  # oldest first
    rejected: tuple[RejectedDefinition, ...] = ()
    begun: tuple[BegunKind, ...] = ()


class HeldDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Definition that a server listed last for some accounts, and that is not accepted.

    Also one that was rejected, as long as the server lists it.
    """

    kind: Kind
    name: str
    definition: msgspec.Raw
    uids: tuple[int, ...]  # accounts of agents
    since: float
    version: str = ""

    def canonical(self) -> Definition:
        """Return the definition."""
        return Definition(DefinitionKey(self.kind, self.name), bytes(self.definition))


class HeldDefinitions(msgspec.Struct, frozen=True, kw_only=True):
    """Definitions that are held back, oldest first."""

    format: int = FORMAT
    held: tuple[HeldDefinition, ...] = ()


def pins_name(server: str) -> str:
    """Return the name of the file with the pins of a server."""
    return f"{server}.json"


def held_name(server: str) -> str:
    """Return the name of the file with what is held back of a server."""
    return f"{server}.held.json"


def next_name(server: str) -> str:
    """Return the name of the next version of the pins, before it is in force."""
    return f".{server}.json.next"


def still_held(pins: ServerPins, held: HeldDefinitions) -> tuple[HeldDefinition, ...]:
    """Return what is held, without what was accepted since the file was written."""
    accepted = {one.canonical() for one in pins.accepted}
    return tuple(one for one in held.held if one.canonical() not in accepted)


def encode(value: msgspec.Struct) -> bytes:
    """Return the content of a file; equal values give equal contents."""
    rest = msgspec.json.encode(value) + b"\n"
    return hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def file_digest(content: bytes) -> str:
    """Return the digest of a version of a file, as the audit records it: its first line.

    Raises:
        DamagedPinsError: it is not the digest of the rest.
    """
    first, newline, rest = content.partition(b"\n")
    digest = hashlib.sha256(rest).hexdigest()
    if not newline or digest.encode() != first:
        raise DamagedPinsError("the first line is not the digest of the rest")
    return digest


def decode_pins(content: bytes) -> ServerPins:
    """Parse the pins of a server.

    Raises:
        DamagedPinsError: they are damaged, or of a later version.
    """
    return _decode(content, ServerPins)


def decode_held(content: bytes) -> HeldDefinitions:
    """Parse the definitions that are held back.

    Raises:
        DamagedPinsError: they are damaged, or of a later version.
    """
    return _decode(content, HeldDefinitions)


def _decode(content: bytes, kind: type[T]) -> T:
    digest = file_digest(content)
    try:
        value = msgspec.json.decode(content[len(digest) + 1 :], type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedPinsError(str(error)) from error
    if getattr(value, "format", None) != FORMAT:
        raise DamagedPinsError("it is of another version of mcpwrap")
    return value
