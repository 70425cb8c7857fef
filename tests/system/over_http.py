"""An agent that speaks HTTP to a listener of its own. Runs in a machine, as anybody: no library.

Its input is a JSON object: `at`, address and port, and `steps`, which are done in turn; each is a
list, the name of a function below and its arguments. Prints what came of each, as a JSON list.
"""

import http.client
import json
import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

Json = dict[str, Any]
MODERN = "2026-07-28"
SPEC = "io.modelcontextprotocol/"
BOTH = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
CLIENT = {"name": "bed", "version": "1"}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
ANSWER_S = 60.0


class Place:
    """Where the listener is."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.session: dict[str, str] = {}
        self.last_id = 0
        self.signs = 0  # of life, on streams
        self.open: list[http.client.HTTPConnection] = []

    def ask(self, method: str, body: Json | None, headers: dict[str, str]) -> Json:
        """Send one request, and return status, headers and messages."""
        answer = self.begin(method, body, headers)
        said: Json = {"status": answer.status, "headers": headers_of(answer)}
        return {**said, **self.rest(answer)}

    def begin(
        self, method: str, body: Json | None, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        """Send one request, and return what is coming."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=ANSWER_S)
        self.open.append(connection)
        text = None if body is None else json.dumps(body)
        connection.request(method, "/", text, {**self.session, **headers})
        return connection.getresponse()

    def rest(self, answer: http.client.HTTPResponse) -> Json:
        """Return the messages that come, and whether it ended as it should."""
        messages, error = [], ""
        try:
            messages = list(self.messages(answer))
        except (http.client.HTTPException, OSError) as failure:
            error = type(failure).__name__
        return {"messages": messages, "error": error}

    def messages(self, answer: http.client.HTTPResponse) -> Iterator[Json]:
        """Give each message when it is there."""
        if answer.headers.get_content_type() != "text/event-stream":
            text = answer.read().decode()
            with suppress(ValueError):
                yield json.loads(text)
            return
        for line in answer:
            self.signs += line.startswith(b":")
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])


def headers_of(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders()}


def request(place: Place, method: str, params: Json) -> Json:
    place.last_id += 1
    return {"jsonrpc": "2.0", "id": place.last_id, "method": method, "params": params}


def modern(place: Place, method: str, params: Json) -> tuple[Json, dict[str, str]]:
    """Return a request of 2026-07-28 and its headers."""
    meta = {SPEC + "protocolVersion": MODERN, SPEC + "clientCapabilities": {}}
    meta = {**meta, SPEC + "clientInfo": CLIENT, **params.get("_meta", {})}
    headers = {**BOTH, "MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if method in NAMED:
        headers["Mcp-Name"] = params[NAMED[method]]
    return request(place, method, {**params, "_meta": meta}), headers


# ------------------------------------------------------------------------------- the steps
def ask(place: Place, method: str, params: Json, headers: dict[str, str]) -> Json:
    """Ask as since 2026-07-28."""
    body, needed = modern(place, method, params)
    return place.ask("POST", body, {**needed, **headers})


def call(place: Place, tool: str, arguments: Json) -> Json:
    """Call a tool as since 2026-07-28."""
    return ask(place, "tools/call", {"name": tool, "arguments": arguments}, {})


def begin(place: Place, headers: dict[str, str]) -> Json:
    """Do the handshake, and go on in that session."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
    answer = place.ask("POST", request(place, "initialize", params), {**BOTH, **headers})
    if session := answer["headers"].get("mcp-session-id"):
        resume(place, session)
        told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        answer["then"] = place.ask("POST", told, {**BOTH, **headers})["status"]
    return answer


def resume(place: Place, session: str) -> None:
    """Go on in a session of before."""
    place.session = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}


def use(place: Place, tool: str, arguments: Json, headers: dict[str, str]) -> Json:
    """Call a tool in the session."""
    params: Json = {"name": tool, "arguments": arguments}
    return place.ask("POST", request(place, "tools/call", params), {**BOTH, **headers})


def end(place: Place, headers: dict[str, str]) -> int:
    """End the session."""
    status: int = place.ask("DELETE", None, headers)["status"]
    return status


def leave(place: Place, tool: str, arguments: Json) -> Json:
    """Call a tool, leave when the first message has come, and return it with its event's id.

    In the session, if there is one; else as since 2026-07-28.
    """
    params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "left"}}
    if place.session:
        body, headers = request(place, "tools/call", params), BOTH
    else:
        body, headers = modern(place, "tools/call", params)
    answer = place.begin("POST", body, headers)
    seen: Json = {"id": None}
    for line in answer:
        if line.startswith(b"id: "):
            seen["id"] = line[4:].decode().strip()
        if line.startswith(b"data: {"):
            seen["message"] = json.loads(line[6:])
            break
    # Both hold the socket.
    answer.close()
    place.open.pop().close()
    return seen


def listen(place: Place, last_event_id: str) -> Json:
    """Read the rest of a stream, until its answer."""
    headers = {"Accept": "text/event-stream", "Last-Event-ID": last_event_id}
    answer = place.begin("GET", None, headers)
    seen: Json = {"status": answer.status, "messages": []}
    for message in place.messages(answer):
        seen["messages"].append(message)
        if "method" not in message:
            break
    return seen


def hear(place: Place, count: int) -> Json:
    """Read so many messages of the stream that belongs to no request."""
    answer = place.begin("GET", None, {"Accept": "text/event-stream"})
    seen: Json = {"status": answer.status, "messages": []}
    print("listening", file=sys.stderr, flush=True)
    for message in place.messages(answer) if count else ():
        seen["messages"].append(message)
        if len(seen["messages"]) == count:
            break
    return seen


def count(place: Place, tool: str, arguments: Json) -> Json:
    """Call a tool that says much, and return what of it came, in which order, and how it ended."""
    params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "many"}}
    body, headers = modern(place, "tools/call", params)
    numbers, last = [], None
    began = time.monotonic()
    answer = place.begin("POST", body, headers)
    for message in place.messages(answer):
        if message.get("method") == "notifications/progress":
            numbers.append(message["params"]["progress"])
        else:
            last = message
    is_whole = numbers == list(range(len(numbers)))
    took_s = time.monotonic() - began
    return {
        "came": len(numbers),
        "in order": is_whole,
        "last": last,
        "took_s": took_s,
        "signs": place.signs,
    }


def raw(place: Place, data: str, wait_s: float) -> Json:
    """Send bytes, and return the status of each answer and whether the connection was closed."""
    with socket.create_connection((place.host, place.port), wait_s) as sock:
        with suppress(OSError):  # it may be refused before all is sent
            sock.sendall(data.encode("latin1"))
        got, is_closed = b"", False
        with suppress(TimeoutError, ConnectionResetError):
            while piece := sock.recv(65536):
                got += piece
            is_closed = True
    statuses = [int(status) for status in re.findall(rb"HTTP/\d\.\d (\d{3}) ", got)]
    return {"statuses": statuses, "closed": is_closed, "text": got.decode("latin1")[:2000]}


def crowd(place: Place, connections: int) -> int:
    """Open many connections and say nothing; return how many there are. They stay open."""
    for _ in range(connections):
        connection = http.client.HTTPConnection(place.host, place.port, timeout=ANSWER_S)
        connection.connect()
        place.open.append(connection)
    return len(place.open)


def reach(place: Place) -> str:
    """Say whether anybody is there."""
    try:
        socket.create_connection((place.host, place.port), 5).close()
    except OSError as error:
        return type(error).__name__
    return "there"


STEPS = {
    step.__name__: step
    for step in (ask, begin, call, count, crowd, end, hear, leave, listen, raw, reach, resume, use)
}


def main() -> None:
    told = json.load(sys.stdin)
    place = Place(*told["at"])
    print(json.dumps([STEPS[name](place, *values) for name, *values in told["steps"]]))


if __name__ == "__main__":
    main()
