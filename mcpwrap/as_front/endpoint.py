"""Address and ports of one server, and its connection limit."""

from dataclasses import dataclass
from ipaddress import IPv4Address

from mcpwrap.core.names import EGRESS_PORT

# Of both ports, at a time. A server opens a few; a runaway one must not take the front from others.
MAX_CONNECTIONS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Port numbers. Only tests use others, as they may not bind these."""

    dns: int = 53
    tls: int = 443
    proxy: int = EGRESS_PORT


@dataclass(frozen=True, slots=True)
class ServerEndpoint:
    """One server and its address, which is all that identifies the server to Squid."""

    server: str
    address: IPv4Address
    ports: Ports

    def at(self, port: int) -> tuple[str, int]:
        """Return what bind(2) and connect(2) take."""
        return str(self.address), port
