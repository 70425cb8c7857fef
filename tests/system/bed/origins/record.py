"""Protocol between the origins and `internet.py`: commands, and the recorded traffic."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field

import msgspec


@dataclass(frozen=True, slots=True)
class Request:
    """HTTP request, of any method and to any host."""

    address: str
    port: int
    sni: str | None
    method: str
    path: str  # with its query
    host: str  # as in the Host header, or HTTP/2's :authority
    version: str  # "1.0", "1.1" or "2"
    headers: list[str] = field(default_factory=list)  # their names, in lower case; not of HTTP/2


@dataclass(frozen=True, slots=True)
class Post:
    """HTTP POST to a team's webhook."""

    host: str
    signature: str  # of the header Mcpwrap-Signature
    body: str


@dataclass(frozen=True, slots=True)
class Call:
    """Whole request to an MCP server of the bed's internet, with header names in lower case."""

    host: str
    method: str
    path: str  # with its query
    headers: list[tuple[str, str]]
    body: str


@dataclass(slots=True)
class Connection:
    """Accepted TCP connection, also if it carried no data."""

    address: str  # its destination
    port: int
    source: str
    sni: str | None = None  # the server name in the TLS ClientHello
    requests: list[Request] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Query:
    """DNS query: the name in lower case, without the last dot."""

    name: str
    type: str
    source: str


@dataclass(frozen=True, slots=True)
class Packet:
    """First packet of a flow, as it came from the machine."""

    protocol: str  # "tcp", "udp", "icmp", or for example "ip-132"
    source: str
    address: str
    port: int


@dataclass(slots=True)
class Seen:
    """All recorded traffic, oldest first."""

    connections: list[Connection] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    packets: list[Packet] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # paths whose client did not wait for the end

    def clear(self) -> None:
        """Clear the records."""
        for entries in (self.connections, self.queries, self.packets, self.calls, self.left):
            entries.clear()


class Report(msgspec.Struct, tag=True):
    """Command: return the recorded traffic."""


class Forget(msgspec.Struct, tag=True):
    """Command: clear the recorded traffic."""


class AddName(msgspec.Struct, tag=True):
    """Command: answer for a name, with `values` the first time, and `then`, if any, later."""

    name: str
    values: Sequence[str]
    then: Sequence[str] = ()
    ttl_s: int = 3600  # longer than any story that depends on Squid's cache


class AddPointer(msgspec.Struct, tag=True):
    """Command: answer for the reverse name of an address."""

    address: str
    name: str


Command = Report | Forget | AddName | AddPointer

# Connection that the running code serves. asyncio copies it to tasks and callbacks.
CONNECTION: ContextVar[Connection] = ContextVar("connection")
