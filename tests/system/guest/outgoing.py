"""Clients of the egress proxy and the front. Runs in the sandbox of a server, in the probe.

A module keeps its state as long as the session of the probe lasts: `started` has the processes and
threads that run on between two calls. The two functions that need no proxy run outside a sandbox,
too.
"""

import errno
import functools
import hashlib
import json
import os
import select
import socket
import ssl
import statistics
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from io import BufferedReader
from typing import Any

WAIT_S = 60.0  # for the other end; the caller sets it for the load of its host
GO_GET = "/opt/mcp/go/get"
PATTERN = b"0123456789abcdef"  # that the origin sends again and again
FAILURES = (OSError, ValueError, IndexError)  # the last two: of an answer that is cut off
started: dict[str, Any] = {}


class RefusedError(OSError):
    """A CONNECT that the proxy refused."""

    def __init__(self, head: bytes) -> None:
        super().__init__(head.decode())
        self.head = head.decode()


# ------------------------------------------------------------------ connections
def own() -> str:
    """Return the egress address of this server."""
    return os.environ["HTTPS_PROXY"].rpartition("/")[2].partition(":")[0]


@functools.cache
def trusted() -> ssl.SSLContext:
    """Return the server's trusted certificates, read once: reading takes longer than the rest."""
    return ssl.create_default_context()


def head_of(s: socket.socket) -> bytes:
    """Read the head of a response, and not a byte of its body."""
    head = b""
    while b"\r\n\r\n" not in head:
        piece = s.recv(1)
        if not piece:
            raise ConnectionError("no answer")
        head += piece
    return head


def tunnel(host: str, port: int = 443) -> socket.socket:
    """Open a tunnel by the proxy.

    Raises:
        RefusedError: the proxy answers with another status than 200.
    """
    s = socket.create_connection((own(), 3128), WAIT_S)
    s.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    head = head_of(s)
    if head.split()[1] != b"200":
        raise RefusedError(head)
    return s


def plainly(host: str) -> socket.socket:
    """Connect as a program without proxy support does: the name leads to the front."""
    return socket.create_connection((host, 443), WAIT_S)


def secured(
    host: str, s: socket.socket | None = None, context: ssl.SSLContext | None = None
) -> ssl.SSLSocket:
    """Begin TLS in this connection, or else in a new tunnel."""
    return (context or trusted()).wrap_socket(s or tunnel(host), server_hostname=host)


def say(s: socket.socket, line: str, host: str, more: str = "") -> BufferedReader:
    """Send a request without a body; return the file from which to read the response."""
    s.sendall(f"{line} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode())
    return s.makefile("rb")


def status_and_headers(answer: BufferedReader) -> tuple[int, dict[str, str]]:
    """Read the head of an answer."""
    status = answer.readline().split()
    headers = {}
    while line := answer.readline().strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return int(status[1]), headers


# ------------------------------------------------------------------ single requests
def ask(
    path: str = "/small",
    host: str = "api.good.test",
    method: str = "GET",
    context: ssl.SSLContext | None = None,
) -> tuple[int, str]:
    """Send one request by the proxy; return the status and the text."""
    with secured(host, context=context) as s:
        answer = say(s, f"{method} {path}", host, "Connection: close\r\n")
        code, _ = status_and_headers(answer)
        return code, answer.read().decode(errors="replace")


def status(**how: Any) -> int | str:
    """Return the outcome of `ask`: a status, that of a refused CONNECT, or the error."""
    try:
        return ask(**how)[0]
    except RefusedError as refused:
        return "CONNECT " + refused.head.split()[1]
    except OSError as error:
        return type(error).__name__


def status_by_machines(authorities: str) -> int | str:
    """Return the same with these authorities instead of those that the server trusts."""
    return status(context=ssl.create_default_context(cafile=authorities))


def ask_directly(host: str = "api.good.test") -> int:
    """Send one request without the proxy; return the status."""
    with secured(host, plainly(host)) as s:
        return status_and_headers(say(s, "GET /small", host, "Connection: close\r\n"))[0]


def ask_in_a_row(paths: list[str], host: str = "api.good.test") -> list[str]:
    """Send requests at once on one connection; return the statuses of the answers."""
    heads = [f"GET {path} HTTP/1.1\r\nHost: {host}\r\n" for path in paths]
    with secured(host) as s:
        s.sendall(("\r\n".join(heads) + "Connection: close\r\n\r\n").encode())
        answers = s.makefile("rb").read()
    return [one[:3].decode() for one in answers.split(b"HTTP/1.1 ")[1:]]


def by_urllib(url: str, knows_proxy: bool = True) -> str:  # noqa: FBT001, FBT002
    """Get a URL as Python's own client does, with the proxy of the environment or without."""
    handlers = [] if knows_proxy else [urllib.request.ProxyHandler({})]
    try:
        answer = urllib.request.build_opener(*handlers).open(url, timeout=WAIT_S)
        return f"{answer.status} {answer.read().decode()}"
    except OSError as error:  # URLError is an OSError
        return f"refused: {error}"


def by_go(url: str, knows_proxy: bool = True) -> str:  # noqa: FBT001, FBT002
    """Get a URL as Go's client does, with the environment or with only its certificates."""
    alone = {"SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"}
    env = dict(os.environ) if knows_proxy else alone
    done = subprocess.run([GO_GET, url], capture_output=True, text=True, env=env)
    return f"200 {done.stdout}" if done.returncode == 0 else f"refused: {done.stderr}"


def greeted(address: str, port: int) -> str:
    """Return the data that an address and port sends to a new connection."""
    with socket.create_connection((address, port), WAIT_S) as s:
        return s.recv(64).decode()


def echoed(text: str) -> tuple[int, list[str]]:
    """Send a text three times over a WebSocket; return the status, and the echoes."""
    upgrade = (
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    )
    data = text.encode()
    with secured("api.good.test") as s:
        answer = say(s, "GET /ws", "api.good.test", upgrade)
        code, _ = status_and_headers(answer)
        came = []
        for _ in range(3):  # RFC 6455: one masked frame of text each; received ones are not
            s.sendall(bytes([0x81, 0x80 | len(data), 0, 0, 0, 0]) + data)
            came.append(answer.read(2 + len(data))[2:].decode())
        return code, came


def issuer(host: str = "api.good.test") -> str:
    """Return the issuer of the certificate that is shown for a host."""
    certificate: Any = secured(host).getpeercert()
    return str(certificate["issuer"][-1][0][1])


def authorities() -> list[str | None]:
    """Return the common names of the server's trusted certificates."""
    subjects: list[Any] = [one["subject"] for one in trusted().get_ca_certs()]
    return [dict(part[0] for part in subject).get("commonName") for subject in subjects]


# ------------------------------------------------------------------ outside a sandbox, too
def reached(targets: list[list[Any]], wait_s: float) -> list[list[Any]]:
    """Return which addresses and ports answer to TCP; all are tried at once."""
    poll, under_way, found = select.poll(), {}, []
    give_up_at = time.monotonic() + wait_s
    for target in targets:
        address, port = target
        s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        s.settimeout(0)
        if s.connect_ex((address, port)) in {0, errno.EINPROGRESS}:
            under_way[s.fileno()] = (s, target)
            poll.register(s, select.POLLOUT)
    while under_way and (left_s := give_up_at - time.monotonic()) > 0:
        for fd, _ in poll.poll(left_s * 1000):
            poll.unregister(fd)
            s, target = under_way.pop(fd)
            if s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                found.append(target)
            s.close()
    return [target for target in targets if target in found]


def resolver_answers(address: str, wait_s: float) -> str:
    """Send a resolver a query; return "answered", or the error's name."""
    query = b"..\1\0\0\1\0\0\0\0\0\0\3api\4good\4test\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(wait_s)
        try:
            s.sendto(query, (address, 53))
            return "answered" if len(s.recv(512)) > len(query) else "too short"
        except OSError as error:
            return type(error).__name__


# ------------------------------------------------------------------ background calls
class Background:
    """One call of a function in a thread."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.result: Any = None
        self.error = ""
        self._call = functools.partial(function, *arguments)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.result = self._call()
        except FAILURES as error:
            self.error = repr(error)

    def finish(self, wait_s: float) -> bool:
        """Wait for its end; return whether it has come."""
        self.thread.join(wait_s)
        return not self.thread.is_alive()

    def said(self) -> tuple[Any, str]:
        """Return the result, and the error if there was one."""
        return self.result, self.error


class Events:
    """Stream of events: those received, and their delay."""

    def __init__(
        self,
        count: int,
        interval_s: float,
        host: str = "api.good.test",
        plain: socket.socket | None = None,
    ) -> None:
        self.s = secured(host, plain)
        self.answer = say(self.s, f"GET /sse?n={count}&interval={interval_s}", host)
        self.status, _ = status_and_headers(self.answer)
        self.count, self.error = count, ""
        self.numbers: list[int] = []
        self.late_s: list[float] = []
        self._has_come = threading.Condition()
        self.s.settimeout(WAIT_S + interval_s)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        try:
            while len(self.numbers) < self.count:
                line = self.answer.readline()
                if line.startswith(b"data: "):
                    self._note(json.loads(line[6:]))
                elif not line:
                    self.error = "it ended"
                    break
        except FAILURES as error:
            self.error = repr(error)
        finally:
            with self._has_come:
                self._has_come.notify_all()

    def _note(self, event: dict[str, Any]) -> None:
        with self._has_come:
            self.numbers.append(event["n"])
            self.late_s.append(time.time() - event["at"])
            self._has_come.notify_all()

    def more(self, count: int) -> dict[str, Any]:
        """Wait for this many more events, or the end of the stream; return the events."""
        with self._has_come:
            wanted = min(self.count, len(self.numbers) + count)
            self._has_come.wait_for(lambda: len(self.numbers) >= wanted or self.error, WAIT_S)
        return self.said()

    def finish(self, wait_s: float) -> bool:
        """Wait for its end; return whether it has come."""
        self.thread.join(wait_s)
        return not self.thread.is_alive()

    def said(self) -> dict[str, Any]:
        """Return the events until now."""
        whole = self.numbers == list(range(len(self.numbers)))
        return {
            "came": len(self.numbers),
            "in order": whole,
            "error": self.error,
            "late_s": round(statistics.median(self.late_s or [0.0]), 3),
            "status": self.status,
        }


class Crowd:
    """New connections, one after the other in each of some threads, until there were enough."""

    def __init__(
        self, at_least: int, threads: int = 4, by: Callable[[str], socket.socket] = tunnel
    ) -> None:
        self.by, self.at_least, self.enough = by, at_least, False
        self.errors: list[str] = []
        self.done, self._lock = 0, threading.Lock()
        self.threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def _run(self) -> None:
        while not (self.enough and self.done >= self.at_least):
            error = self._connect()
            with self._lock:
                self.done += 1
                self.errors += [error] if error else []

    def _connect(self) -> str:
        try:
            with secured("api.good.test", self.by("api.good.test")) as s:
                code, _ = status_and_headers(say(s, "HEAD /small", "api.good.test"))
        except FAILURES as failure:
            return f"{time.time():.3f} {failure!r}"
        return "" if code == 200 else f"{time.time():.3f} status {code}"

    def finish(self, wait_s: float) -> bool:
        """Wait for the end of all threads; return whether it has come."""
        give_up_at = time.monotonic() + wait_s
        for thread in self.threads:
            thread.join(max(0.0, give_up_at - time.monotonic()))
        return not any(thread.is_alive() for thread in self.threads)

    def said(self) -> dict[str, Any]:
        """Return how many connections there were, and how many failed."""
        return {"done": self.done, "errors": self.errors[:5], "failed": len(self.errors)}


def download(size: int) -> tuple[int, int, bool]:
    """Return the status of a download, the number of missing bytes, and whether it is intact."""
    digest, left = hashlib.sha256(), size
    with secured("api.good.test") as s:
        answer = say(s, f"GET /bytes/{size}", "api.good.test")
        code, _ = status_and_headers(answer)
        while left and (piece := answer.read(min(left, 1 << 20))):
            digest.update(piece)
            left -= len(piece)
    return code, left, digest.hexdigest() == _digest_of_pattern(size)


def _digest_of_pattern(size: int) -> str:
    digest, block = hashlib.sha256(), PATTERN * 65536
    whole, rest = divmod(size, len(block))
    for _ in range(whole):
        digest.update(block)
    digest.update(block[:rest])
    return digest.hexdigest()
