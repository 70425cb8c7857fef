"""Report on the pins of a server, for the person who reads or decides: `mcpwrap tools`."""

import msgspec

from mcpwrap.core.pins.pin_question import HeldChanges
from mcpwrap.core.pins.pins_file import AcceptedDefinition, HeldDefinition, RejectedDefinition
from mcpwrap.core.wire.approval_socket import May
from mcpwrap.core.wire.server_files import Pins


class PinsReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pins of one server, and the question on what is held back."""

    server: str
    mode: Pins
    accepted: tuple[AcceptedDefinition, ...] = ()  # oldest first
    held: tuple[HeldDefinition, ...] = ()  # also rejected ones
    rejected: tuple[RejectedDefinition, ...] = ()
    question: str = ""  # id of the pending question; "" if there is none
    digest: str = ""  # of its document
    changes: HeldChanges = HeldChanges()  # that it asks about
    may: May = "no"  # whether the account that gets the report may answer it
    foreign_names: tuple[str, ...] = ()  # of tools of other servers, for findings


def encode(report: PinsReport) -> bytes:
    """Return the bytes of a report."""
    return msgspec.json.encode(report)


def decode(content: bytes) -> PinsReport:
    """Parse a report of the gate, which is trusted.

    Raises:
        msgspec.MsgspecError: it is of another version.
    """
    return msgspec.json.decode(content, type=PinsReport)
