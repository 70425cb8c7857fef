"""Address and ports of one server, and its connection limit."""

from dataclasses import dataclass
from ipaddress import IPv4Address

from mcpwrap.core.names import EGRESS_PORT

# Of both ports together. A server opens a few; a runaway one must not block the front for others.
MAX_CONNECTIONS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Port numbers. Only tests use others, because they may not bind these."""

    dns: int = 53
    tls: int = 443
    proxy: int = EGRESS_PORT


@dataclass(frozen=True, slots=True)
class ServerEndpoint:
    """Server and its egress address, by which alone Squid identifies the server."""

    server: str
    address: IPv4Address
    ports: Ports

    def at(self, port: int) -> tuple[str, int]:
        """Return the address for bind(2) and connect(2)."""
        return str(self.address), port
