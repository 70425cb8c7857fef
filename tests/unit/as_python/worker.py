"""Stand-in for the worker: another principal, which replies as its script says."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

from tests.shared import pace

TOKEN = "of-this-test"
SUCCESS: dict[str, Any] = {
    "stdout": "1\n", "stderr": "", "exit_code": 0, "error": None, "truncated": False,
    "duration_ms": 12, "killed": False,
}  # fmt: skip
Reply = Callable[["WorkerHandler"], None]


class WorkerHandler(BaseHTTPRequestHandler):
    """One request; it has been read when a reply begins."""

    protocol_version = "HTTP/1.1"
    world: "StandInWorker"
    body: dict[str, Any]

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"]))
        self.body = json.loads(text)
        self.world.requests.append(self.body)
        self.world.headers.append(dict(self.headers))
        self.world.replies.get(timeout=pace.WAIT_S)(self)
        self.close_connection = True

    def head(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Connection", "close")
        self.end_headers()

    def line(self, **message: Any) -> None:
        self.wfile.write(json.dumps(message).encode() + b"\n")
        self.wfile.flush()

    def wait_for_end(self) -> None:
        """Wait until the caller hangs up."""
        self.connection.settimeout(pace.WAIT_S)
        with suppress(BrokenPipeError):  # of TLS that was closed without its own end
            assert self.rfile.read(1) == b""

    def log_message(self, *_: Any) -> None:
        pass


def result(**fields: Any) -> Reply:
    """Return a run that ends at once."""

    def reply(handler: WorkerHandler) -> None:
        handler.head(200)
        handler.line(result={**SUCCESS, **fields})

    return reply


def status(code: int, body: str = '{"error": "of the test"}', **headers: str) -> Reply:
    """Return a refusal."""

    def reply(handler: WorkerHandler) -> None:
        handler.head(code, **headers)
        handler.wfile.write(body.encode())

    return reply


def raw(text: bytes) -> Reply:
    """Return a stream with these bytes, whose end is the end of the connection."""

    def reply(handler: WorkerHandler) -> None:
        handler.head(200)
        handler.wfile.write(text)

    return reply


@dataclass
class RunningCall:
    """Run that goes on until the test or the caller ends it."""

    has_begun: threading.Event = field(default_factory=threading.Event)
    may_end: threading.Event = field(default_factory=threading.Event)
    has_caller_gone: threading.Event = field(default_factory=threading.Event)

    def until_told(self, handler: WorkerHandler) -> None:
        handler.head(200)
        handler.line(progress={"state": "queued", "elapsed_ms": 0, "ahead": 3})
        handler.line(progress={"state": "running", "elapsed_ms": 9, "output": "half way"})
        self.has_begun.set()
        assert self.may_end.wait(pace.WAIT_S)
        handler.line(result=SUCCESS)

    def until_gone(self, handler: WorkerHandler) -> None:
        handler.head(200)
        handler.line(progress={"state": "running", "elapsed_ms": 1})
        self.has_begun.set()
        handler.wait_for_end()
        self.has_caller_gone.set()


class _Server(ThreadingHTTPServer):
    request_queue_size = 64  # with the default of 5, connections at the same time are lost


class StandInWorker:
    """Worker on loopback: its replies are given in advance, its requests are recorded."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.replies: Queue[Reply] = Queue()
        handler = type("_Handler", (WorkerHandler,), {"world": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @contextmanager
    def running(self) -> Iterator["StandInWorker"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def will(self, *replies: Reply) -> None:
        for reply in replies:
            self.replies.put(reply)
