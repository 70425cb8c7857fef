"""Event log of the SNI front, for `mcpwrap egress`: one line of JSON for each event."""

from typing import Literal

import msgspec

FrontEventKind = Literal[
    "asked",  # a query to the resolver; each name once a minute
    "no-sni",  # TLS without a server name, so the host is unknown
    "not-tls",  # no TLS; port 443 is for TLS only
    "refused",  # by the proxy, or the proxy could not be reached
    "closed-early",  # before a host was named, or before the host sent data
    "too-many",  # connections at a time
    "more",  # there were more events than the log has
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
    """Parse a line.

    Raises:
        msgspec.MsgspecError: the line is malformed or cut off.
    """
    try:
        return msgspec.json.decode(line, type=FrontEvent)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error
