"""HTTP client that times the same server over several ways. RUNS AS an agent.

The standard library alone. Its input is a JSON object: `ways`, each of which has a `url`, `headers`
and `is_modern`, `rounds`, and `what`, a function of VISITS. Every round visits all ways once, in
another order, on new connections, after a call that is not timed. Prints for each way and metric
what was found, in seconds.
"""

import itertools
import json
import random
import socket
import ssl
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from threading import Barrier
from typing import Any, BinaryIO
from urllib.parse import urlsplit

Json = dict[str, Any]
Found = dict[str, list[float]]
SPEC = "io.modelcontextprotocol/"
CLIENT = {"name": "bench", "version": "1"}
HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
FORMS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
WAIT_S = 30
CALLS, SPARSE_CALLS, PAUSE_S = 100, 25, 0.01
AT_MOST_S = 2.0  # of a visit: who is slow makes fewer calls
EVENTS, INTERVAL_S = 50, 0.005
CONNECTIONS, CROWD_S = 32, 3.0
AT_ONCE_S = 60.0  # until each of them has been answered once
SMALL = {"name": "echo", "arguments": {"text": "x" * 100}}
CLOCK = {"n": EVENTS, "interval_s": INTERVAL_S}
TRUSTED = ssl.create_default_context()
ids = itertools.count(1)


class Way:
    """Way to the server: a URL, and the session there once one has begun."""

    def __init__(self, name: str, url: str, headers: dict[str, str], *, is_modern: bool) -> None:
        self.name = name
        self._there, self._headers, self._is_modern = urlsplit(url), headers, is_modern
        if is_modern:
            return
        told = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT}
        connection = Connection(self)
        list(connection.ask("initialize", told))
        session = connection.fields[b"mcp-session-id"].decode()
        self._headers = {
            **headers, "Mcp-Session-Id": session, "MCP-Protocol-Version": HANDSHAKE,
        }  # fmt: skip
        list(connection.ask("notifications/initialized", {}))
        connection.close()

    def connected(self) -> socket.socket:
        """Return a new connection."""
        host, port = str(self._there.hostname), self._there.port or 443
        plain = socket.create_connection((host, port), WAIT_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._there.scheme == "http":
            return plain
        return TRUSTED.wrap_socket(plain, server_hostname=host)

    def request(self, verb: str, method: str, params: Json) -> bytes:
        """Return a request with its body."""
        headers = {"Host": self._there.netloc, **FORMS, **self._headers}
        if self._is_modern:
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            headers["Mcp-Name"] = params["name"]
            meta = {SPEC + "protocolVersion": MODERN, SPEC + "clientCapabilities": {}}
            meta = {**meta, SPEC + "clientInfo": CLIENT, **params.get("_meta", {})}
            params = {**params, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": next(ids), "method": method, "params": params}
        if method.startswith("notifications/"):
            del message["id"]
        body = json.dumps(message).encode() if method else b""
        headers["Content-Length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{verb} {self._there.path} HTTP/1.1\r\n{head}\r\n".encode() + body

    def end(self) -> None:
        """End the session."""
        if not self._is_modern:
            connection = Connection(self)
            connection.send(self.request("DELETE", "", {}))
            connection.close()


class Connection:
    """Persistent HTTP connection, kept from call to call."""

    def __init__(self, way: Way) -> None:
        self._way, self._sock = way, way.connected()
        self._file: BinaryIO = self._sock.makefile("rb")
        self.fields: dict[bytes, bytes] = {}

    def ask(self, method: str, params: Json) -> Iterator[Json]:
        """Give each message of the answer when it is there.

        Raises:
            OSError: there is no answer.
        """
        status = self.send(self._way.request("POST", method, params))
        if status not in {200, 202}:
            raise OSError(f"{self._way.name}: {method}: status {status}")
        is_stream = self.fields.get(b"content-type", b"").startswith(b"text/event-stream")
        rest = b""
        for piece in self._pieces():
            *lines, rest = (rest + piece).split(b"\n") if is_stream else [piece, b""]
            texts = [line.removeprefix(b"data: ") for line in lines]
            yield from (json.loads(text) for text in texts if text.startswith(b"{"))

    def send(self, request: bytes) -> int:
        """Send a request, read the head of its answer, and return its status."""
        self._sock.sendall(request)
        status_line = self._file.readline()
        if not status_line:
            raise ConnectionError(f"{self._way.name} has closed a connection")
        status = int(status_line.split()[1])
        self.fields = {}
        while line := self._file.readline().strip():
            name, _, value = line.partition(b":")
            self.fields[name.lower()] = value.strip()
        return status

    def _pieces(self) -> Iterator[bytes]:
        """Give the body as it comes."""
        if b"transfer-encoding" not in self.fields:
            yield self._file.read(int(self.fields.get(b"content-length", b"0")))
            return
        while size := int(self._file.readline(), 16):
            yield self._file.read(size)
            self._file.readline()
        self._file.readline()

    def call(self, params: Json = SMALL) -> list[Json]:
        """Call a tool, and return all that came.

        Raises:
            OSError: it says that it failed.
        """
        came = list(self.ask("tools/call", params))
        if "result" not in came[-1] or came[-1]["result"].get("isError"):
            raise OSError(str(came[-1]))
        return came

    def close(self) -> None:
        """Close it."""
        self._file.close()
        self._sock.close()


# ------------------------------------------------------------------------------- the visits
def hot(way: Way) -> Found:
    """Call when the last is answered."""
    return _calls(way, CALLS, 0)


def sparse(way: Way) -> Found:
    """Call 10 ms after the last was answered."""
    return _calls(way, SPARSE_CALLS, PAUSE_S)


def _calls(way: Way, count: int, pause_s: float) -> Found:
    connection, took = Connection(way), []
    connection.call()
    ends_at = time.perf_counter() + AT_MOST_S
    while len(took) < count and time.perf_counter() < ends_at:
        time.sleep(pause_s)
        began = time.perf_counter()
        connection.call()
        took.append(time.perf_counter() - began)
    connection.close()
    return {"took": took}


def stream(way: Way) -> Found:
    """Read a stream of events that say when they were sent, by the one clock of the kernel."""
    connection = Connection(way)
    connection.call()
    params = {"name": "clock", "arguments": CLOCK, "_meta": {"progressToken": next(ids)}}
    began, first, late = time.monotonic(), [], []
    for message in connection.ask("tools/call", params):
        now = time.monotonic()
        first = first or [now - began]
        if message.get("method") == "notifications/progress":
            late.append(now - int(message["params"]["message"]) / 1e9)
    connection.close()
    return {"first": first, "late": late} if late else {"first": [], "late": []}


def crowd(way: Way) -> Found:
    """Have 32 connections call at a time; return how long it took for one, on average."""
    ready = Barrier(CONNECTIONS, timeout=AT_ONCE_S)
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        done = threads.map(_call_for_long, repeat(way, CONNECTIONS), repeat(ready))
    counts, took = zip(*done, strict=True)
    return {"each": [max(took) / sum(counts)]}


def _call_for_long(way: Way, ready: Barrier) -> tuple[int, float]:
    """Return how many calls there were, and in which time."""
    connection, number = Connection(way), 0
    connection.call()
    ready.wait()
    began = time.perf_counter()
    while (took := time.perf_counter() - began) < CROWD_S:
        connection.call()
        number += 1
    connection.close()
    return number, took


def leave(way: Way) -> Found:
    """Make a call in a session that is not ended."""
    connection = Connection(way)
    connection.call()
    connection.close()
    return {}


VISITS = {visit.__name__: visit for visit in (hot, sparse, stream, crowd, leave)}


def main() -> None:
    told = json.load(sys.stdin)
    visit = VISITS[told["what"]]
    ways = {label: Way(label, **way) for label, way in told["ways"].items()}
    found: dict[str, Found] = {label: defaultdict(list) for label in ways}
    for _ in range(told["rounds"]):
        for label in random.sample([*ways], len(ways)):
            for metric, values in visit(ways[label]).items():
                found[label][metric] += values
    for way in ways.values() if visit is not leave else ():
        way.end()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
