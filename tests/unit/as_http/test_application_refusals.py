"""Rejected HTTP requests, byte by byte, each with a twin that is accepted."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from mcpwrap.as_http.connections import HttpConnectionLimits
from tests.shared import pace
from tests.unit.as_http.agent import BOTH, MODERN, Agent, running
from tests.unit.as_http.standing_gate import StandingGate
from tests.unit.http_service import Headers

BODY = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'
HEAD = (
    b"Host: HOST\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\nConnection: close\r\n"
)
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
POST = b"POST /mcp HTTP/1.1\r\n"


def _status(answer: bytes) -> int:
    return int(answer.split(b" ")[1])


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (POST + HEAD + LENGTH + b"\r\n" + BODY, 200),
        (POST + HEAD + CHUNKED + b"\r\n" + CHUNKS, 200),
        (b"POST / HTTP/1.1\r\n" + HEAD + LENGTH + b"\r\n" + BODY, 200),
        (POST + HEAD + LENGTH + LENGTH + b"\r\n" + BODY, 400),
        (POST + HEAD + LENGTH + b"Content-Length: 1\r\n\r\n" + BODY, 400),
        (POST + HEAD + b"Content-Length: -1\r\n\r\n" + BODY, 400),
        (POST + HEAD + b"Content-Length: +88\r\n\r\n" + BODY, 400),
        (POST + HEAD + b"Content-Length: 8_8\r\n\r\n" + BODY, 400),
        (POST + HEAD + b"Content-Length: 0x58\r\n\r\n" + BODY, 400),
        (POST + HEAD + b"Content-Length: 88, 88\r\n\r\n" + BODY, 400),
        (POST + HEAD + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n" + BODY, 400),
        (POST + HEAD + b"Content-Length: 67108865\r\n\r\n", 413),
        (POST + HEAD + LENGTH + CHUNKED + b"\r\n" + CHUNKS, 400),
        (POST + HEAD + CHUNKED + LENGTH + b"\r\n" + CHUNKS, 400),
        (POST + HEAD + CHUNKED + CHUNKED + b"\r\n" + CHUNKS, 400),
        (POST + HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKS, 400),
        (POST + HEAD + b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKS, 400),
        (POST + HEAD + b"Transfer-Encoding : chunked\r\n\r\n" + CHUNKS, 400),
        (POST + HEAD + CHUNKED + b"\r\nzz\r\n" + BODY, 400),
        (POST + HEAD + CHUNKED + b"\r\n-1\r\n" + BODY, 400),
        (POST + HEAD + CHUNKED + b"\r\n" + b"f" * 20 + b"\r\n" + BODY, 400),
        (POST + HEAD + CHUNKED + b"\r\n2\r\n{}{\r\n0\r\n\r\n", 400),  # longer than its length
        (POST + HEAD + b"X: a\r\n b\r\n" + LENGTH + b"\r\n" + BODY, 400),  # folded
        (POST + HEAD + b"X: a\rb\r\n" + LENGTH + b"\r\n" + BODY, 400),
        (POST + HEAD + b"X: a\0b\r\n" + LENGTH + b"\r\n" + BODY, 400),
        (POST + HEAD + b"X Y: a\r\n" + LENGTH + b"\r\n" + BODY, 400),
        (POST + HEAD + b": a\r\n" + LENGTH + b"\r\n" + BODY, 400),
        ((POST + HEAD + LENGTH + b"\r\n").replace(b"\r\n", b"\n") + BODY, 400),
        (POST + HEAD + b"X: " + b"x" * 20_000 + b"\r\n" + LENGTH + b"\r\n" + BODY, 400),
        (POST + HEAD + b"X: x\r\n" * 200 + LENGTH + b"\r\n" + BODY, 400),
        (b"POST /" + b"x" * 8000 + b" HTTP/1.1\r\n" + HEAD + LENGTH + b"\r\n" + BODY, 400),
        (b"POST /mcp HTTP/3.0\r\n" + HEAD + LENGTH + b"\r\n" + BODY, 400),
        (b"POST /mcp\r\n" + HEAD + LENGTH + b"\r\n" + BODY, 400),
        (b"POST /mcp HTTP/1.0\r\n" + HEAD + LENGTH + b"\r\n" + BODY, 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # TLS
        (b"POST /mcp HTTP/1.1\r\n" + HEAD.replace(b"Host: HOST\r\n", b"") + LENGTH + b"\r\n", 400),
        (POST + b"Host: HOST\r\n" + HEAD + LENGTH + b"\r\n" + BODY, 400),  # twice
        (POST + HEAD.replace(b"HOST", b"evil.example") + LENGTH + b"\r\n" + BODY, 421),
        (POST + HEAD + b"Origin: null\r\n" + LENGTH + b"\r\n" + BODY, 403),
        (POST + HEAD + b"Origin: http://HOST\r\n" + LENGTH + b"\r\n" + BODY, 200),
        (b"POST //evil HTTP/1.1\r\n" + HEAD + LENGTH + b"\r\n" + BODY, 404),
        (b"POST http://HOST/mcp HTTP/1.1\r\n" + HEAD + LENGTH + b"\r\n" + BODY, 404),
        (b"POST http://evil/mcp HTTP/1.1\r\n" + HEAD + LENGTH + b"\r\n" + BODY, 404),
        (b"OPTIONS /mcp HTTP/1.1\r\n" + HEAD + b"\r\n", 405),
        (b"OPTIONS * HTTP/1.1\r\n" + HEAD + b"\r\n", 404),
        (b"CONNECT HOST HTTP/1.1\r\n" + HEAD + b"\r\n", 404),
        (b"TRACE /mcp HTTP/1.1\r\n" + HEAD + b"\r\n", 405),
        (POST + HEAD + b"Upgrade: websocket\r\n" + LENGTH + b"\r\n" + BODY, 400),
        (POST + HEAD + b"Expect: 200-ok\r\n" + LENGTH + b"\r\n" + BODY, 417),
        (POST + HEAD + b"Cookie: a=b\r\nX-Forwarded-Host: evil\r\n" + LENGTH + b"\r\n" + BODY, 200),
    ],
)  # fmt: skip
def test_which_requests_are_accepted(
    agent: Agent, gate: StandingGate, request_: bytes, status: int
) -> None:
    answer = agent.raw(request_)
    assert _status(answer) == status
    assert b"Access-Control" not in answer
    assert b"aiohttp" not in answer or status == 400
    assert len(gate.sessions) == (1 if status == 200 else 0)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","id":2}', -32600),
        (b'\xff{"jsonrpc":"2.0","id":1,"method":"ping"}', -32700),
        (b"[" * 100 + b"]" * 100, -32600),
        (b"[]", -32600),
        (b"{}", -32600),
        (b"7", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        (b'[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', -32600),
        (b'[{"jsonrpc":"2.0","id":1}]', -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),  # there is no session
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', -32600),
    ],
)
def test_a_body_that_is_not_a_message_is_rejected(
    agent: Agent, gate: StandingGate, body: bytes, code: int
) -> None:
    answer = agent.ask("POST", body=body)
    assert answer.status == 400
    assert answer.json()["error"]["code"] == code
    assert gate.sessions == []


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, 400),
        ("GET", {"Mcp-Session-Id": "x"}, 404),
        ("DELETE", {}, 400),
        ("DELETE", {"Mcp-Session-Id": "x"}, 404),
        ("GET", {"MCP-Protocol-Version": MODERN}, 405),
        ("DELETE", {"MCP-Protocol-Version": MODERN, "Mcp-Session-Id": "x"}, 405),
        ("GET", {"MCP-Protocol-Version": "1999-01-01"}, 400),
        ("POST", {"Mcp-Session-Id": "x"}, 404),
        ("POST", {}, 400),
        ("POST", {"MCP-Protocol-Version": "1999-01-01"}, 400),
    ],
)
def test_without_a_session(agent: Agent, method: str, headers: Headers, status: int) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}' if method == "POST" else b""
    with agent.ask(method, headers=headers, body=body) as answer:
        assert answer.status == status
        assert answer.header("Allow") == ("POST" if status == 405 else "")


def test_a_body_may_follow_after_100_continue(agent: Agent) -> None:
    with socket.create_connection(("127.0.0.1", agent.port), timeout=pace.WAIT_S) as connection:
        head = POST + HEAD + b"Expect: 100-continue\r\n" + LENGTH + b"\r\n"
        connection.sendall(head.replace(b"HOST", agent.host.encode()))
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BODY)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.fixture
def hurried(gate: StandingGate) -> Iterator[Agent]:
    """Return an agent of a listener with short timeouts and four connections."""
    limits = HttpConnectionLimits(connections=4, head_s=0.3, between_s=0.3, body_s=0.2)
    with running({"gate": gate.path, "limits": limits}) as port:
        yield Agent(port)


def test_a_head_that_does_not_end_is_cut_off(hurried: Agent) -> None:
    assert hurried.raw(POST + b"Host: HOST\r\nX:") == b""


def test_an_endless_head_is_cut_off(agent: Agent) -> None:
    with socket.create_connection(("127.0.0.1", agent.port), timeout=pace.WAIT_S) as connection:
        sent = 0
        with suppress(ConnectionError):
            while sent < 100_000:
                connection.sendall(b"X-%d: x\r\n" % sent if sent else POST)
                sent += 1
        assert sent < 90_000


def test_a_body_that_does_not_end_is_cut_off(hurried: Agent) -> None:
    answer = hurried.raw(POST + HEAD + LENGTH + b"\r\n" + BODY[:-1])
    assert _status(answer) == 408


def test_an_endless_body_is_cut_off(agent: Agent) -> None:
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", agent.port), timeout=pace.WAIT_S) as connection:
        head = POST + HEAD + CHUNKED + b"\r\n"
        connection.sendall(head.replace(b"HOST", agent.host.encode()))
        with suppress(ConnectionError):  # it is not read to its end
            for _ in range(100):
                connection.sendall(chunk)
        assert _status(connection.recv(1000)) == 413


def test_a_connection_is_kept_until_its_timeout(hurried: Agent) -> None:
    kept = HEAD.replace(b"Connection: close\r\n", b"")
    one = b"DELETE /mcp HTTP/1.1\r\n" + kept + b"\r\n"
    assert hurried.raw(one * 2).count(b"HTTP/1.1 400 Bad Request") == 2  # and then it ends


def test_many_silent_connections_block_no_other(hurried: Agent) -> None:
    silent = [socket.create_connection(("127.0.0.1", hurried.port)) for _ in range(20)]
    try:
        assert hurried.begin().status == 200
    finally:
        for one in silent:
            one.close()


def test_with_all_connections_busy_the_next_gets_a_503(hurried: Agent, gate: StandingGate) -> None:
    hurried.begin().text()
    with hurried.ask("GET") as stream:
        assert stream.status == 200
        held = [hurried.ask("GET", "/sse", {"Mcp-Session-Id": None}) for _ in range(3)]
        assert _status(hurried.raw(POST + HEAD + LENGTH + b"\r\n" + BODY)) == 503
        for one in held:
            one.close()
    for session in gate.sessions[1:]:
        assert session.is_over.wait(pace.WAIT_S)
    assert hurried.post(hurried.request("tools/list")).status == 200


def test_a_repeated_session_header_is_rejected(agent: Agent) -> None:
    agent.begin().text()
    session = agent.headers["Mcp-Session-Id"]
    assert session
    body = json.dumps(agent.request("tools/list")).encode()
    line = b"Mcp-Session-Id: %s\r\n" % session.encode()
    length = b"Content-Length: %d\r\n\r\n" % len(body)
    assert _status(agent.raw(POST + HEAD + line * 2 + length + body)) == 400
    assert _status(agent.raw(POST + HEAD + line + length + body)) == 200


def test_sessions_do_not_wait_for_each_other(agent: Agent) -> None:
    """Threads, each with a session of its own."""
    statuses: list[int] = []

    def run() -> None:
        one = Agent(agent.port)
        statuses.append(one.begin().status)
        statuses.append(one.post(one.request("tools/list"), {"Accept": BOTH}).status)

    threads = [threading.Thread(target=run) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(pace.WAIT_S)
    assert statuses == [200] * 32
