"""HTTP listener in a thread of its own, and an agent without an SDK as its client."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from typing import Any

from mcpwrap.as_http.main import serve
from mcpwrap.as_http.state import ListenerSettings
from mcpwrap.core.wire.listener_file import Listener
from tests.unit.http_service import Headers, Silent, exchange, send, serving

Message = dict[str, Any]
BOTH = "application/json, text/event-stream"
MODERN = "2026-07-28"
_ANSWERS: list["Answer"] = []  # which a test need not close
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Event:
    """One event of an SSE stream."""

    data: str
    event: str = ""
    id: str = ""
    retry: str = ""

    @property
    def message(self) -> Message:
        return dict(json.loads(self.data))


@dataclass
class Answer:
    """HTTP response; a stream is read as it arrives."""

    connection: HTTPConnection
    response: HTTPResponse
    comments: int = 0

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def kind(self) -> str:
        return self.header("Content-Type")

    def header(self, name: str) -> str:
        return self.response.getheader(name) or ""

    def json(self) -> Message:
        with self:
            assert self.kind == "application/json"
            return dict(json.loads(self.response.read()))

    def text(self) -> str:
        with self:
            return self.response.read().decode()

    def events(self) -> Iterator[Event]:
        """Yield the events, until the stream ends."""
        fields: dict[str, str] = {}
        while line := self.response.readline().decode():
            name, _, value = line.rstrip("\n").partition(":")
            if name:
                fields[name] = value.removeprefix(" ")
            elif line == "\n" and fields:
                yield Event(**fields)
                fields = {}
            elif line != "\n":
                self.comments += 1

    def messages(self) -> list[Message]:
        """Read to the end."""
        with self:
            assert self.kind == "text/event-stream"
            return [event.message for event in self.events() if event.data]

    def close(self) -> None:
        self.response.close()
        self.connection.close()

    def __enter__(self) -> "Answer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass
class Agent:
    """HTTP client of the listener. Headers given as None are left out."""

    port: int
    headers: Headers = field(default_factory=dict)
    ids: int = 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str = "/mcp", headers: Headers | None = None, body: bytes = b""
    ) -> Answer:
        every: Headers = {"Host": self.host, "Accept": BOTH}
        if method == "POST":
            every |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        every |= self.headers | (headers or {})
        connection = send(self.port, (method, path), every, body)
        answer = Answer(connection, connection.getresponse())
        _ANSWERS.append(answer)
        return answer

    def post(self, message: Any, headers: Headers | None = None, path: str = "/mcp") -> Answer:
        return self.ask("POST", path, headers, json.dumps(message).encode())

    def request(self, method: str, **params: Any) -> Message:
        self.ids += 1
        return {"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params}

    def begin(self, version: str = "2025-11-25") -> Answer:
        """Do the handshake, and stay in the session."""
        answer = self.post(self.request("initialize", protocolVersion=version))
        self.headers |= {"Mcp-Session-Id": answer.header("Mcp-Session-Id") or None}
        self.headers |= {"MCP-Protocol-Version": version}
        return answer

    def modern(self, method: str, headers: Headers | None = None, **params: Any) -> Answer:
        """Send a request as of 2026-07-28."""
        message = self.request(method, _meta=ENVELOPE, **params)
        every: Headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if name := params.get("name") or params.get("uri"):
            every["Mcp-Name"] = name
        return self.post(message, every | (headers or {}))

    def raw(self, data: bytes) -> bytes:
        """Send bytes, and return all received bytes until the end."""
        return exchange(self.port, data)


@contextmanager
def running(around: dict[str, Any], *, is_remote: bool = False) -> Iterator[int]:
    """Serve in a thread, and return the port."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    listener = Listener(server="notes", uid=1000, address="127.0.0.1", is_remote=is_remote)
    settings = ListenerSettings(port=port, **around)
    with listening, serving(lambda stop: serve((listening, listener), settings, stop, Silent())):
        try:
            yield port
        finally:
            while _ANSWERS:
                _ANSWERS.pop().close()
