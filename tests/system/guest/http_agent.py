"""HTTP agent that calls a listener. Runs inside the machine, as any account: no library.

The first line of its input is a JSON object: `at`, address and port; `within_s`, the bound of each
wait; and `steps`, which are taken in turn. Each is a list: the name of a function below and its
arguments.
"""

import http.client
import io
import json
import os
import socket
import sys
import threading
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
# After a first answer: shows whether the connection still accepts a request.
LAST = "GET /no-such-place HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n\r\n"


class Place:
    """Address of a listener, and the agent's session there."""

    def __init__(self, host: str, port: int, within_s: float) -> None:
        self.host, self.port, self.within_s = host, port, within_s
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
        """Send one request, and return the response for reading."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=self.within_s)
        self.open.append(connection)
        text = None if body is None else json.dumps(body)
        connection.request(method, "/", text, {**self.session, **headers})
        return connection.getresponse()

    def rest(self, answer: http.client.HTTPResponse) -> Json:
        """Return the received messages, and whether the stream ended as it should."""
        messages, error = [], ""
        try:
            messages = list(self.messages(answer))
        except (http.client.HTTPException, OSError) as failure:
            error = type(failure).__name__
        return {"messages": messages, "error": error}

    def messages(self, answer: http.client.HTTPResponse) -> Iterator[Json]:
        """Yield each message as it arrives."""
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


# ------------------------------------------------------------------------------- steps
def ask(place: Place, method: str, params: Json, headers: dict[str, str]) -> Json:
    """Send a request as since 2026-07-28."""
    body, needed = modern(place, method, params)
    return place.ask("POST", body, {**needed, **headers})


def call(place: Place, tool: str, arguments: Json) -> Json:
    """Call a tool as since 2026-07-28."""
    return ask(place, "tools/call", {"name": tool, "arguments": arguments}, {})


def begin(place: Place, headers: dict[str, str]) -> Json:
    """Do the handshake, and continue in that session."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
    answer = place.ask("POST", request(place, "initialize", params), {**BOTH, **headers})
    if session := answer["headers"].get("mcp-session-id"):
        resume(place, session)
        told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        answer["then"] = place.ask("POST", told, {**BOTH, **headers})["status"]
    return answer


def resume(place: Place, session: str) -> None:
    """Continue in an earlier session."""
    place.session = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}


def use(place: Place, tool: str, arguments: Json, headers: dict[str, str]) -> Json:
    """Call a tool in the session."""
    params: Json = {"name": tool, "arguments": arguments}
    return place.ask("POST", request(place, "tools/call", params), {**BOTH, **headers})


def use_until_gone(place: Place, tool: str, arguments: Json) -> list[Json]:
    """Call a tool in the session until the session is gone; return each answer."""
    ends_at = time.monotonic() + place.within_s
    answers = [use(place, tool, arguments, {})]
    while answers[-1]["status"] != 404 and time.monotonic() < ends_at:
        answers.append(use(place, tool, arguments, {}))
    return answers


def end(place: Place, headers: dict[str, str]) -> int:
    """End the session."""
    status: int = place.ask("DELETE", None, headers)["status"]
    return status


def leave(place: Place, tool: str, arguments: Json) -> Json:
    """Call a tool, disconnect after the first message, and return it with its event's id.

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
    """Print that it listens, and read this many messages of the stream without a request."""
    answer = place.begin("GET", None, {"Accept": "text/event-stream"})
    seen: Json = {"status": answer.status, "messages": []}
    if count:
        print("listening", flush=True)
    for message in place.messages(answer) if count else ():
        seen["messages"].append(message)
        if len(seen["messages"]) == count:
            break
    return seen


def count(place: Place, tool: str, arguments: Json) -> Json:
    """Call a tool that sends much, and return what arrived, in which order, and how it ended."""
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


def raw(place: Place, data: str) -> Json:
    """Send bytes; return the status of each answer to them, and whether the connection is closed.

    A connection that is not closed after the first answer gets one more request: the answers before
    its answer belong to the bytes.
    """
    with socket.create_connection((place.host, place.port), place.within_s) as sock:
        with suppress(OSError):  # it may be refused before all is sent
            sock.sendall(data.encode("latin1"))
        texts: list[bytes] = []
        with suppress(OSError), sock.makefile("rb") as answers:
            while text := _answer(answers):
                texts.append(text)
                if len(texts) == 1:
                    sock.sendall(LAST.format(place.host, place.port).encode())
    statuses = [int(text.split()[1]) for text in texts]
    is_open = len(texts) > 1 and statuses[-1] == 404
    if is_open:
        statuses.pop()
    said = b"".join(texts).decode("latin1")
    return {"statuses": statuses, "closed": not is_open, "text": said[:2000]}


def _answer(answers: io.BufferedReader) -> bytes:
    """Return the next final response, skipping 1xx; nothing if the connection has ended."""
    head = b""
    while (line := answers.readline()) not in {b"\r\n", b""}:
        head += line
    if head.startswith(b"HTTP/1.1 1"):
        return _answer(answers)
    headers = dict(
        line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line
    )
    if headers.get(b"transfer-encoding") == b"chunked":
        return head + b"".join(_chunks(answers))
    return head + answers.read(int(headers.get(b"content-length", b"0")))


def _chunks(answers: io.BufferedReader) -> Iterator[bytes]:
    while size := int(answers.readline() or b"0", 16):
        yield answers.read(size)
        answers.readline()
    answers.readline()


def await_end(place: Place, data: str) -> Json:
    """Send the beginning of a request; return the statuses until the other side closes."""
    with socket.create_connection((place.host, place.port), place.within_s) as sock:
        sock.sendall(data.encode("latin1"))
        got = b""
        while piece := sock.recv(65536):
            got += piece
    return {"statuses": [int(got.split()[1])] if got else []}


def crowd(place: Place, connections: int) -> int:
    """Open many connections without sending; return how many there are. They stay open."""
    for _ in range(connections):
        connection = http.client.HTTPConnection(place.host, place.port, timeout=place.within_s)
        connection.connect()
        place.open.append(connection)
    return len(place.open)


def reach(place: Place) -> str:
    """Return whether a process listens there."""
    try:
        socket.create_connection((place.host, place.port), place.within_s).close()
    except OSError as error:
        return type(error).__name__
    return "there"


STEPS = {
    step.__name__: step
    for step in (
        ask, await_end, begin, call, count, crowd, end, hear, leave, listen, raw, reach, resume,
        use, use_until_gone,
    )
}  # fmt: skip


def take_steps() -> list[Any]:
    """Take the steps in the first line of standard input; return the result of each."""
    return _taken(json.loads(sys.stdin.readline()))


def take_steps_until_closed() -> list[Any]:
    """Take the steps too, and end at once when standard input is closed."""
    told = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    return _taken(told)


def _taken(told: Json) -> list[Any]:
    host, port = told["at"]
    place = Place(host, port, told["within_s"])
    return [STEPS[name](place, *values) for name, *values in told["steps"]]


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)
