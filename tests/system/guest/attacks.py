"""Attempts of a hostile server to get past the packet rules. Runs inside the machine.

As a server, or as an account that the rules do not wrap; a visitor from outside runs some of it on
the bed's internet.
"""

import ctypes
import errno
import os
import re
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

_FOUND = re.search(r"//([0-9.]+):", os.environ.get("HTTPS_PROXY", ""))
OWN = _FOUND[1] if _FOUND else ""  # the address by which Squid identifies the server
SQUID_PORT = 3128
ANSWER = b"a secret"
API = "198.51.100.10"
IP_OPTIONS, SO_MARK, IP_FREEBIND, IP_TRANSPARENT = 4, 36, 15, 19
MSG_FASTOPEN = 0x20000000
IO_URING_SETUP = 425
_listeners: list[socket.socket] = []
_datagrams: list[socket.socket] = []


def wait_at_most(wait_s: float) -> None:
    """Bound every wait for a socket in this process."""
    socket.setdefaulttimeout(wait_s)


def name_of(error: OSError) -> str:
    """Return the name of the error."""
    if isinstance(error, ssl.SSLError):
        return error.reason or type(error).__name__
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


# ---------------------------------------------------------------------- packets
def tcp(address: str, port: int, wait_s: float | None = None) -> str:
    """Connect and send a text; `wait_s` is for a connection that is not expected to be answered."""
    try:
        with socket.create_connection((address, port), wait_s or socket.getdefaulttimeout()) as s:
            s.sendall(b"attack")
    except OSError as error:
        return name_of(error)
    return "connected"


def udp(address: str, port: int, text: str = "attack") -> str:
    """Send a datagram."""
    return _datagram(address, port, text.encode(), protocol=0)


def _datagram(address: str, port: int, data: bytes, *, protocol: int) -> str:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM, protocol) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            s.sendto(data, (address, port))
    except OSError as error:
        return name_of(error)
    return "sent"


def tcp_to(targets: Sequence[tuple[str, int]]) -> list[str]:
    """Connect to each in turn."""
    return [tcp(address, port) for address, port in targets]


def tcp_and_udp_to(address: str, tcp_ports: Sequence[int], udp_ports: Sequence[int]) -> list[str]:
    """Connect to these ports of one address, then send a datagram to those."""
    by_tcp = [tcp(address, port) for port in tcp_ports]
    return by_tcp + [udp(address, port) for port in udp_ports]


def everywhere(
    local: Sequence[str], local_ports: Sequence[int], away: Sequence[str]
) -> dict[str, str]:
    """Try the machine's own addresses, those of the internet, and every protocol."""
    told = {}
    for address in local:
        for port in local_ports:
            told[f"tcp {address} {port}"] = tcp(address, port)
        told[f"udp {address} 5300"] = udp(address, 5300)
    for address in away:
        told[f"tcp {address} 443"] = tcp(address, 443)
        for port in (53, 443):
            told[f"udp {address} {port}"] = udp(address, port)
    for address in ("192.0.2.1", "224.0.0.251", "255.255.255.255", "192.0.2.255", "ff02::fb%eth0"):
        told[f"udp {address} 5353"] = udp(address, 5353)
    echo4, echo6 = (struct.pack("!BBHHH", kind, 0, 0, 1, 1) for kind in (8, 128))
    told["udplite"] = _datagram(API, 9, b"attack", protocol=socket.IPPROTO_UDPLITE)
    told["icmp"] = _datagram(API, 0, echo4, protocol=socket.IPPROTO_ICMP)
    told["icmp6"] = _datagram("2001:db8:2::10", 0, echo6, protocol=socket.IPPROTO_ICMPV6)
    return told


def from_one_port(addresses: Sequence[str]) -> list[str]:
    """Connect to each in turn, from the same port; return the answers."""
    return [_from_port(address, 40_077) for address in addresses]


def _from_port(address: str, port: int) -> str:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as s:
        try:
            s.bind(("", port))
            s.connect((address, 443))
        except OSError as error:
            return name_of(error)
    return "connected"


def timed(addresses: Sequence[str]) -> list[tuple[str, float]]:
    """Connect to each in parallel; return the answers, and the seconds that each took."""

    def one(address: str) -> tuple[str, float]:
        began = time.monotonic()
        return tcp(address, 443), time.monotonic() - began

    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(one, addresses))


# ---------------------------------------------------------------------- sockets
def interfaces() -> list[str]:
    """Return the names of the interfaces."""
    return [name for _, name in socket.if_nameindex()]


def kinds_of_sockets() -> tuple[list[list[int]], list[int], int, int]:
    """Return the families and types that can be made, the protocols, and io_uring's outcome."""

    def makes(*kind: int) -> bool:
        try:
            socket.socket(*kind).close()
        except OSError:
            return False
        return True

    kinds = [[f, k] for f in range(64) for k in (1, 2, 3, 5) if makes(f, k, 0)]
    protocols = {
        p for f in (2, 10) for k in (1, 2, 3, 5, 6) for p in range(1, 263) if makes(f, k, p)
    }
    libc = ctypes.CDLL(None, use_errno=True)
    ring = libc.syscall(IO_URING_SETUP, 8, 0)
    return kinds, sorted(protocols), ring, ctypes.get_errno()


def _after(level: int, option: int, value: int | bytes) -> list[str]:
    """Set an option, and connect; return the outcome of both."""
    with socket.socket() as s:
        try:
            s.setsockopt(level, option, value)
            told = "set"
        except OSError as error:
            told = name_of(error)
        try:
            s.connect((API, 443))
        except OSError as error:
            return [told, name_of(error)]
        return [told, "connected"]


def _fast_open() -> str:
    with socket.socket() as s:
        try:
            s.sendto(b"attack", MSG_FASTOPEN, (API, 443))
        except OSError as error:
            return name_of(error)
        return "sent"


def _from_source(address: str) -> str:
    try:
        socket.create_connection((API, 443), source_address=(address, 0)).close()
    except OSError as error:
        return name_of(error)
    return "connected"


def with_options() -> dict[str, list[str]]:
    """Connect with each option of a socket that could bypass a rule."""
    tcp_level, tcp_repair = socket.IPPROTO_TCP, 19
    return {
        "SO_MARK": _after(socket.SOL_SOCKET, SO_MARK, 1),
        "SO_BINDTODEVICE": _after(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0"),
        "IP_TRANSPARENT": _after(socket.SOL_IP, IP_TRANSPARENT, 1),
        "IP_HDRINCL": _after(socket.SOL_IP, socket.IP_HDRINCL, 1),
        "TCP_REPAIR": _after(tcp_level, tcp_repair, 1),
        "IP_FREEBIND": _after(socket.SOL_IP, IP_FREEBIND, 1),
        "fast open": [_fast_open()],
        "source": [_from_source("192.0.2.2")],
        "own source": [_from_source(OWN)],
    }


def by_source_routes(wait_s: float) -> list[str]:
    """Connect by way of one address to another (RFC 791).

    The rules see the first; the last is in an option.
    """

    def by_way(destination: str, first: str) -> str:
        with socket.socket() as s:
            s.settimeout(wait_s)
            try:
                route = bytes([131, 7, 4]) + socket.inet_aton(first) + bytes(1)
                s.setsockopt(socket.SOL_IP, IP_OPTIONS, route)
                s.connect((destination, 443))
            except OSError as error:
                return name_of(error)
            return "connected"

    return [by_way(API, OWN), by_way(OWN, API)]


# ---------------------------------------------------------------------- visitors
def listen(port: int) -> str:
    """Listen at every address until `stop_listening`, and send each visitor a secret."""
    listener = socket.socket()
    listener.settimeout(None)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("0.0.0.0", port))
        listener.listen()
    except OSError as error:
        listener.close()
        return name_of(error)
    _listeners.append(listener)
    threading.Thread(target=_tell, args=(listener,), daemon=True).start()
    return "listening"


def _tell(listener: socket.socket) -> None:
    try:
        while True:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(ANSWER)
    except OSError:
        return  # it was shut down


def stop_listening() -> None:
    """Close the sockets of `listen`."""
    while _listeners:
        with _listeners.pop() as listener:
            listener.shutdown(socket.SHUT_RDWR)


def visit(source: tuple[str, int], to: tuple[str, int], wait_s: float) -> str:
    """Connect from one address to another; return the received text."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.settimeout(wait_s)
        try:
            s.bind(tuple(source))
            s.connect(tuple(to))
            return s.recv(99).decode()
        except OSError as error:
            return name_of(error)


def take_datagrams(port: int) -> None:
    """Keep datagrams to a port until `answer_datagram`."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("0.0.0.0", port))
    _datagrams.append(s)


def answer_datagram() -> str:
    """Wait for a datagram, and answer it."""
    with _datagrams.pop() as s:
        _, peer = s.recvfrom(99)
        try:
            s.sendto(ANSWER, peer)
        except OSError as error:
            return name_of(error)
        return "answered"


# ---------------------------------------------------------------------- names, and programs
def resolve(names: Sequence[str]) -> list[list[str] | str]:
    """Resolve by libc; return addresses, or the number of the error."""

    def one(name: str) -> list[str] | str:
        try:
            return sorted({str(entry[4][0]) for entry in socket.getaddrinfo(name, 443)})
        except OSError as error:
            return f"EAI {error.errno}"

    return [one(name) for name in names]


def resolve_by_node(name: str) -> str:
    """Resolve by Node's own resolver, which queries the servers itself."""
    script = f"require('dns').resolve('{name}', (e, a) => console.log(e ? e.code : a))"
    return subprocess.run(["/usr/bin/node", "-e", script], capture_output=True, text=True).stdout


def curl(wait_s: float, words: Sequence[str], variables: dict[str, str]) -> str:
    """Fetch, and return the status; 000 means no response."""
    argv = ["/usr/bin/curl", "-sk", "-m", f"{wait_s}", "-o", "/dev/null", "-w", "%{http_code}"]
    environment = os.environ | variables
    return subprocess.run([*argv, *words], env=environment, capture_output=True, text=True).stdout
