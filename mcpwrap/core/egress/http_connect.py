"""HTTP CONNECT request to a proxy, and parser of its response (RFC 9110 section 9.3.6)."""

import re
from dataclasses import dataclass

from mcpwrap.core.egress.host_names import shown

MAX_HEAD_BYTES = 16 * 1024  # Squid's own are 500
_END = b"\r\n\r\n"
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: ([^\r\n]*))?")


@dataclass(frozen=True, slots=True)
class HeadIncomplete:
    """Result: the head of the response is incomplete."""


@dataclass(frozen=True, slots=True)
class TunnelEstablished:
    """Result: the tunnel is open; `rest` is data that the host has already sent."""

    rest: bytes


@dataclass(frozen=True, slots=True)
class TunnelRefused:
    """Result: the proxy opens no tunnel, by a rule or because it cannot reach the host."""

    status: int
    reason: str  # printable ASCII

    def is_by_rule(self) -> bool:
        """Return whether a rule of the proxy refused the tunnel, not an unreachable host."""
        return 400 <= self.status < 500


@dataclass(frozen=True, slots=True)
class NotHttp:
    """Result: the peer is not an HTTP proxy."""


Reply = HeadIncomplete | TunnelEstablished | TunnelRefused | NotHttp


def request(host: str) -> bytes:
    """Return the request for port 443 of a host; the caller has validated its name."""
    return f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode("ascii")


def reply(untrusted: bytes) -> Reply:
    """Parse the proxy's response, of which there may be only the beginning."""
    head, end, rest = untrusted.partition(_END)
    if len(head) > MAX_HEAD_BYTES:
        return NotHttp()
    if not end:
        return HeadIncomplete()
    found = _STATUS_LINE.fullmatch(head.partition(b"\r\n")[0])
    if found is None:
        return NotHttp()
    status = int(found[1])
    if 200 <= status < 300:  # such a response has no body (RFC 9112 section 6.3)
        return TunnelEstablished(rest)
    return TunnelRefused(status, shown(found[2] or b""))
