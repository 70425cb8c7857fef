"""Server that opens connections without end, or abandons them. Runs inside the machine."""

import resource
import select
import socket
import ssl
import struct
from contextlib import suppress

from tests.system.guest.attacks import OWN, SQUID_PORT, name_of
from tests.system.guest.proxy_attacks import connect

_held: list[socket.socket] = []


def hold(count: int, text: str = "", port: int = SQUID_PORT) -> int:
    """Open this many connections that send only this; return how many could be opened."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # A connection that Squid does not keep is closed once accepted; only descriptors can run out
    # here.
    with suppress(OSError):
        while len(_held) < count:
            s = socket.create_connection((OWN, port))
            _held.append(s)
            with suppress(OSError):  # it may have been closed at once
                s.sendall(text.encode())
    return len(_held)


def held() -> int:
    """Return how many connections neither side has closed."""
    poll = select.poll()
    for s in _held:
        poll.register(s, select.POLLIN)
    return len(_held) - len({fd for fd, _ in poll.poll(0)})


def let_go() -> None:
    """Close them."""
    while _held:
        _held.pop().close()


def abandon(host: str, rounds: int = 8, each: int = 500) -> int:
    """Begin TLS with a host that does not answer, and disconnect abruptly; count the attempts.

    As TLS begins, so that Squid connects to the host.
    """
    hello = _hello(host)
    got_through = 0
    for _ in range(rounds):
        left = []
        for _ in range(each):
            s = socket.create_connection((OWN, SQUID_PORT))
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            left.append(s)
            got_through += _begins(s, host, hello)
        # Squid has read the last hello once it answers a later connection.
        connect("api.good.test:443")
        for s in left:
            s.close()
    return got_through


def _hello(host: str) -> bytes:
    to_send = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), to_send, server_hostname=host)
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return to_send.read()


def _begins(s: socket.socket, host: str, hello: bytes) -> bool:
    try:
        s.sendall(f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode())
        if not s.recv(99):
            return False
        s.sendall(hello)
    except OSError:
        return False
    return True


def bound_to(address: str) -> str:
    """Connect to Squid from an address."""
    with socket.socket() as s:
        try:
            s.bind((address, 0))
            s.connect((OWN, SQUID_PORT))
        except OSError as error:
            return name_of(error)
        return "connected"
