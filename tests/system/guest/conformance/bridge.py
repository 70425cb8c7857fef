"""HTTP in front of a server on stdin and stdout, for a suite that uses only HTTP.

Runs in a machine. Its arguments: a port, and the command. In the handshake era each Mcp-Session-Id
has a process of its own; requests of 2026-07-28 share one. Over pipes a message does not name the
request that it belongs to, so it goes to the last open one. Source: the transports of 2025-11-25
and 2026-07-28.
"""

import base64
import itertools
import json
import queue
import re
import secrets
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
MODERN = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
LOCAL = re.compile(r"(https?://)?(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")
STATUS = {-32601: 404, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
TARGET = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
ENCODED = re.compile(r"=\?base64\?(.*)\?=")
LOOK_EVERY_S = 0.05  # whether the client of the response is still connected


class Stream:
    """Messages for one HTTP response."""

    def __init__(self, asked: Json | None = None) -> None:
        self.asked = asked
        self.messages: queue.SimpleQueue[Json] = queue.SimpleQueue()


class Child:
    """One server process, and the streams that wait for its answers."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._writing = threading.Lock()
        self._ids = itertools.count(1)
        self._open: dict[int, Stream] = {}  # by the id that the process knows
        self.independent: Stream | None = None  # of a GET
        threading.Thread(target=self._read, daemon=True).start()

    def write(self, message: Json) -> None:
        """Write one line."""
        stdin = self._process.stdin
        assert stdin
        with self._writing, suppress(BrokenPipeError):
            stdin.write(json.dumps(message).encode() + b"\n")
            stdin.flush()

    def ask(self, request: Json) -> tuple[int, Stream]:
        """Write a request under a unique id."""
        number, stream = next(self._ids), Stream(request)
        self._open[number] = stream
        self.write({**request, "id": number})
        return number, stream

    def tell(self, notification: Json) -> None:
        """Write a notification, of a request under the id that the process knows."""
        params = notification.get("params", {})
        if notification["method"] == "notifications/cancelled":
            for number, stream in list(self._open.items()):
                if stream.asked and stream.asked["id"] == params.get("requestId"):
                    params = {**params, "requestId": number}
        self.write({**notification, "params": params} if params else notification)

    def leave(self, number: int) -> None:
        """Cancel a request: since 2026-07-28 the end of its response has this meaning."""
        if self._open.pop(number, None):
            params = {"requestId": number}
            self.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def end(self) -> None:
        """End the process."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            with suppress(ValueError):
                self._deliver(json.loads(line))

    def _deliver(self, message: Json) -> None:
        if "method" not in message:
            if stream := self._open.pop(message["id"], None):
                assert stream.asked
                stream.messages.put({**message, "id": stream.asked["id"]})
            return
        params = message.get("params", {})
        meta = params.get("_meta", {})
        if SUBSCRIPTION in meta:
            if stream := self._open.get(meta[SUBSCRIPTION]):
                assert stream.asked
                meta = {**meta, SUBSCRIPTION: stream.asked["id"]}
                stream.messages.put({**message, "params": {**params, "_meta": meta}})
        elif stream := self._concerned(params):
            stream.messages.put(message)

    def _concerned(self, params: Json) -> Stream | None:
        """Return the response for a message; over pipes only progress names it."""
        for stream in reversed(self._open.values()):
            meta = (stream.asked or {}).get("params", {}).get("_meta", {})
            if (
                "progressToken" not in params
                or meta.get("progressToken") == params["progressToken"]
            ):
                return stream
        return self.independent


class Bridge(ThreadingHTTPServer):
    """Server processes behind the bridge."""

    daemon_threads = True

    def __init__(self, port: int, command: list[str]) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.command = command
        self.by_session: dict[str, Child] = {}
        self._shared: Child | None = None
        self._making = threading.Lock()

    def shared(self) -> Child:
        """Return the process for requests that carry their revision."""
        with self._making:
            self._shared = self._shared or Child(self.command)
        return self._shared


class Handler(BaseHTTPRequestHandler):
    """One HTTP connection."""

    protocol_version = "HTTP/1.1"
    server: Bridge  # type: ignore[mutable-override] # no other makes it

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self._is_local():
            return
        message = json.loads(body)
        params = message.get("params", {})
        version = params.get("_meta", {}).get(VERSION)
        if version or self.headers["MCP-Protocol-Version"] == MODERN:
            self._post_modern(message, params, version)
        elif message.get("method") == "initialize":
            made = Child(self.server.command)
            self._answer(made, message, self._new_session(made))
        elif child := self._child():
            if "method" in message and "id" in message:
                self._answer(child, message)
                return
            child.tell(message) if "method" in message else child.write(message)
            self._say(202)

    def do_GET(self) -> None:
        if not self._is_local() or not (child := self._child()):
            return
        child.independent = Stream()
        self._begin_stream()
        for message in self._said_on(child.independent):
            self._send_event(message)

    def do_DELETE(self) -> None:
        if child := self._child():
            del self.server.by_session[self.headers["Mcp-Session-Id"]]
            self._say(200)
            child.end()

    def _post_modern(self, message: Json, params: Json, version: str | None) -> None:
        name = params.get(TARGET.get(message["method"], ""))
        wrong = self.headers["Mcp-Method"] != message["method"]
        wrong |= version is not None and self.headers["MCP-Protocol-Version"] != version
        wrong |= name is not None and _decoded(self.headers["Mcp-Name"]) != name
        if wrong:
            error = {"code": -32020, "message": "the headers say something else"}
            self._say(400, {"jsonrpc": "2.0", "id": message.get("id"), "error": error})
        elif "id" in message:
            self._answer(self.server.shared(), message, is_modern=True)
        else:
            self.server.shared().tell(message)
            self._say(202)

    def _answer(
        self, child: Child, request: Json, session: str = "", *, is_modern: bool = False
    ) -> None:
        number, stream = child.ask(request)
        said = self._said_on(stream)
        first = next(said, None)
        if first is not None and "method" not in first:
            code = first.get("error", {}).get("code")
            self._say(STATUS.get(code, 200) if is_modern else 200, first, session)
            return
        self._begin_stream()
        for message in itertools.chain([first] if first else [], said):
            self._send_event(message)
        if is_modern:
            child.leave(number)
        self.close_connection = True

    def _said_on(self, stream: Stream) -> Iterator[Json]:
        """Send the messages, until the answer, or until the client disconnects."""
        while True:
            try:
                message = stream.messages.get(timeout=LOOK_EVERY_S)
            except queue.Empty:
                if self._has_left():
                    return
                continue
            yield message
            if "method" not in message:
                return

    def _has_left(self) -> bool:
        readable = select.select([self.connection], [], [], 0)[0]
        with suppress(OSError):
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        return True

    def _is_local(self) -> bool:
        said = [value for key in ("Host", "Origin") if (value := self.headers[key]) is not None]
        if all(LOCAL.fullmatch(value) for value in said):
            return True
        self._say(403)
        return False

    def _new_session(self, child: Child) -> str:
        session = secrets.token_hex(16)
        self.server.by_session[session] = child
        return session

    def _child(self) -> Child | None:
        session = self.headers["Mcp-Session-Id"]
        if session is None:
            self._say(405 if self.headers["MCP-Protocol-Version"] == MODERN else 400)
        elif session in self.server.by_session:
            return self.server.by_session[session]
        else:
            self._say(404)
        return None

    def _say(self, status: int, message: Json | None = None, session: str = "") -> None:
        body = json.dumps(message).encode() if message else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(body)

    def _begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

    def _send_event(self, message: Json) -> None:
        with suppress(OSError):
            self.wfile.write(f"data: {json.dumps(message)}\n\n".encode())
            self.wfile.flush()


def _decoded(header: str | None) -> str | None:
    if header and (found := ENCODED.fullmatch(header)):
        return base64.b64decode(found[1]).decode()
    return header


def main() -> None:
    port, *command = sys.argv[1:]
    bridge = Bridge(int(port), command)
    print("ready", flush=True)
    bridge.serve_forever()


if __name__ == "__main__":
    main()
