"""Timed outgoing connections: direct, by Squid, by the front. RUNS AS A SERVER, in its session.

The probe of bed/session.py imports it there, so it imports nothing of mcpwrap.
"""

import os
import socket
import ssl
import threading
import time
from contextlib import suppress

HOST, ADDRESS, PORT = "api.good.test", "198.51.100.10", 443
WAIT_S = 60
PAUSE_S = 0.01  # between the connections of a crowd: they shall not take the processor from Squid
ASK = f"GET /small HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
TRUSTED = ssl.create_default_context()  # once: reading all certificates takes longer than the rest
# "" in a server without a proxy.
PROXY = os.getenv("HTTPS_PROXY", "").rpartition("/")[2].partition(":")[0]
kept: dict[str, ssl.SSLSocket] = {}


def direct() -> socket.socket:
    """Connect to the address, which root has allowed."""
    return socket.create_connection((ADDRESS, PORT), WAIT_S)


def proxy() -> socket.socket:
    """Ask Squid for a tunnel, as a program does that knows proxy variables."""
    tunnel = socket.create_connection((PROXY, 3128), WAIT_S)
    tunnel.sendall(f"CONNECT {HOST}:{PORT} HTTP/1.1\r\nHost: {HOST}:{PORT}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):  # the host says nothing before we do
        head += _received(tunnel)
    if head.split()[1] != b"200":
        raise ConnectionError(head.decode())
    return tunnel


def front() -> socket.socket:
    """Look the name up and connect, as a program does that knows no proxy."""
    return socket.create_connection((HOST, PORT), WAIT_S)


def new_s(way: str, count: int) -> list[float]:
    """Return how long each took, one after the other: to connect, TLS, and the first answer."""
    return [_timed(way) for _ in range(count)]


def later_s(way: str, count: int) -> list[float]:
    """Return how long each request took on a connection that is kept from call to call."""
    if way not in kept:
        kept[way] = _secured(way)
        _ask(kept[way])
    found = []
    for _ in range(count):
        began = time.perf_counter()
        _ask(kept[way])
        found.append(time.perf_counter() - began)
    return found


def look_up_s(count: int) -> list[float]:
    """Return how long it took to look the name up."""
    found = []
    for _ in range(count):
        began = time.perf_counter()
        socket.getaddrinfo(HOST, PORT, type=socket.SOCK_STREAM)
        found.append(time.perf_counter() - began)
    return found


class Crowd:
    """Background load of new connections by Squid, one after the other, until `end`."""

    def __init__(self) -> None:
        self._took_s: list[float] = []
        self._failed: list[str] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.wait(PAUSE_S):
            try:
                self._took_s.append(_timed("proxy"))
            except OSError as error:
                self._failed.append(repr(error))

    def end(self) -> dict[str, float | list[str]]:
        """Return the longest, how many there were, and what went wrong."""
        self._is_over.set()
        self._thread.join()
        return {"max_s": max(self._took_s), "count": len(self._took_s), "failed": self._failed}


crowds: list[Crowd] = []


def begin() -> None:
    """Start a crowd."""
    crowds.append(Crowd())


def end() -> dict[str, float | list[str]]:
    """End it, and return what it saw."""
    return crowds.pop().end()


def _timed(way: str) -> float:
    began = time.perf_counter()
    with _secured(way) as connection:
        _ask(connection)
        took = time.perf_counter() - began
        with suppress(OSError):  # so that both ends know that it is over
            connection.unwrap()
    return took


def _secured(way: str) -> ssl.SSLSocket:
    plain = {"direct": direct, "proxy": proxy, "front": front}[way]()
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as HTTP clients do
    return TRUSTED.wrap_socket(plain, server_hostname=HOST)


def _ask(connection: socket.socket) -> None:
    connection.sendall(ASK)
    answer = b""
    while not answer.endswith(b"}"):  # the one of the JSON object, and there is no other
        answer += _received(connection)
    if not answer.startswith(b"HTTP/1.1 200"):
        raise ConnectionError(answer.decode())


def _received(connection: socket.socket) -> bytes:
    if data := connection.recv(65536):
        return data
    raise ConnectionError("it ended")
