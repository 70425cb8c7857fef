"""Event log of the SNI front, for `mcpwrap egress`: one line of JSON for each event."""

from typing import Literal

import msgspec

FrontEventKind = Literal[
    "asked",  # a name, of the resolver; once a minute
    "no-sni",  # TLS that names no host: nobody can say where it wants to go
    "not-tls",  # nor that; port 443 is for nothing else
    "refused",  # by the proxy, or it could not be asked
    "closed-early",  # before a host was named, or had said anything
    "too-many",  # connections at a time
    "more",  # there were more events than are written
]


class FrontEvent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of `/var/log/mcpwrap/front/events.jsonl`. All text is printable ASCII."""

    t: float  # seconds since 1970
    server: str
    event: FrontEventKind
    host: str = ""
    detail: str = ""


def encode(event: FrontEvent) -> bytes:
    """Return the line, newline included."""
    return msgspec.json.encode(event) + b"\n"


def decode(line: bytes) -> FrontEvent:
    """Return the event in a line.

    Raises:
        msgspec.MsgspecError: it is none, or cut off.
    """
    try:
        return msgspec.json.decode(line, type=FrontEvent)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error
