"""Requests of a hostile server to Squid and to the front. Runs inside the machine, as the server.

Texts to send are Latin-1, so that any byte can stand in them.
"""

import os
import socket
import ssl
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.system.guest.attacks import OWN, SQUID_PORT, name_of, tcp, udp

GET = "GET /v1/x HTTP/1.1\r\nHost: api.good.test\r\nConnection: close\r\n\r\n"
MANY = 99  # responses that must not come


def _read_line(s: socket.socket) -> bytes:
    """Read until there is a whole line; return it, with the data after it."""
    got = b""
    while b"\n" not in got and (chunk := s.recv(65536)):
        got += chunk
    return got


def _first_line(got: bytes) -> str:
    return got.decode("latin1").split("\r\n")[0]


def _await_responses(s: socket.socket, got: bytes, count: int, wait_s: float) -> None:
    """Read until this many responses began, the peer closed, or nothing came for this long."""
    s.settimeout(wait_s)
    try:
        while got.count(b"HTTP/1.") < count and (chunk := s.recv(65536)):
            got += chunk
    except OSError:
        return  # a timeout, or an abrupt end


def say(text: str, to: str = "") -> str:
    """Return the first line of Squid's response."""
    try:
        with socket.create_connection((to or OWN, SQUID_PORT)) as s:
            s.sendall(text.encode("latin1"))
            return _first_line(_read_line(s))
    except OSError as error:
        return name_of(error)


def say_each(texts: Sequence[str]) -> list[str]:
    """Send each on a connection of its own."""
    return [say(text) for text in texts]


def say_after(tunnel: str, texts: Sequence[str], wait_s: float) -> list[str]:
    """Open a tunnel for each, in parallel, and send it there; return the outcomes."""

    def one(text: str) -> str:
        try:
            with socket.create_connection((OWN, SQUID_PORT)) as s:
                s.sendall(tunnel.encode("latin1"))
                got = _read_line(s)
                s.sendall(text.encode("latin1"))
                _await_responses(s, got, MANY, wait_s)
                return _first_line(got)
        except OSError as error:
            return name_of(error)

    with ThreadPoolExecutor(len(texts)) as pool:
        return list(pool.map(one, texts))


def connect(target: str, to: str = "") -> str:
    """Request a tunnel; return the status."""
    line = say(f"CONNECT {target} HTTP/1.1\r\n\r\n", to=to)
    return line.split()[1] if line.startswith("HTTP/") else line


def connect_each(targets: Sequence[str]) -> list[str]:
    """Request a tunnel to each."""
    return [connect(target) for target in targets]


def use(address: str, target: str) -> list[str]:
    """Use the ports of an egress address: Squid, and the three ports of the front."""
    front = [tcp(address, 443), tcp(address, 53), udp(address, 53)]
    return [connect(target, to=address), *front]


def _tls(raw: socket.socket, name: str | None) -> ssl.SSLSocket:
    # Any certificate is accepted: an attacker does not care.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(raw, server_hostname=name)


def inside(target: str, name: str | None, text: str = GET) -> str:
    """Send within TLS with this name, within a tunnel to that host; return the first line."""
    return _inside(target, name, text, more=0, wait_s=0.0)


def _inside(target: str, name: str | None, text: str, *, more: int, wait_s: float) -> str:
    try:
        with socket.create_connection((OWN, SQUID_PORT)) as raw:
            raw.sendall(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
            if " 200 " not in (line := _first_line(_read_line(raw))):
                return line
            with _tls(raw, name) as s:
                s.sendall(text.encode("latin1"))
                got = _read_line(s)
                _await_responses(s, got, 1 + more, wait_s)
                return _first_line(got)
    except OSError as error:
        return name_of(error)


def inside_each(targets: Sequence[str], names: Sequence[str | None]) -> list[str]:
    """Fetch within a tunnel to each target, with the name that stands beside it."""
    return [inside(target, name) for target, name in zip(targets, names, strict=True)]


def ask_inside(host: str, texts: Sequence[str]) -> list[str]:
    """Send each within a tunnel of its own to a host; return the first lines."""
    return [inside(f"{host}:443", host, text) for text in texts]


def ask_more_inside(host: str, texts: Sequence[str], more: int, wait_s: float) -> list[str]:
    """Send each so, in parallel, and wait for as many responses after the first.

    Or until nothing comes for `wait_s`.
    """

    def one(text: str) -> str:
        return _inside(f"{host}:443", host, text, more=more, wait_s=wait_s)

    with ThreadPoolExecutor(len(texts)) as pool:
        return list(pool.map(one, texts))


def timed_inside(host: str, wait_s: float) -> tuple[str, float]:
    """Fetch within a tunnel to a host; return the first line, and the seconds that it took."""
    socket.setdefaulttimeout(wait_s)
    began = time.monotonic()
    return inside(f"{host}:443", host), time.monotonic() - began


def by_front(names: Sequence[str | None]) -> list[str]:
    """Fetch through the front, by these names within TLS."""

    def one(name: str | None) -> str:
        try:
            with socket.create_connection((OWN, 443)) as raw, _tls(raw, name) as s:
                s.sendall(GET.encode())
                return _first_line(_read_line(s))
        except OSError as error:
            return name_of(error)

    return [one(name) for name in names]


def readable(files: Sequence[str], folders: Sequence[str]) -> list[str]:
    """Return the readable ones of these files, and of the files in these folders."""
    walked = [(top, names) for folder in folders for top, _, names in os.walk(folder)]
    found = [str(Path(top, name)) for top, names in walked for name in names]
    return [path for path in (*found, *files) if _can_read(Path(path))]


def _can_read(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return bool(file.read(1))
    except OSError:
        return False
