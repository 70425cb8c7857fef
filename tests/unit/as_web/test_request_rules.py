"""Rejected requests to the page, each with a twin that is accepted."""

import socket

import pytest

from mcpwrap.as_web.responses import HEADERS
from tests.shared import pace
from tests.unit.as_web.browser import Browser
from tests.unit.as_web.scripted_gate import ScriptedGate
from tests.unit.http_service import Headers

FOLLOWED: Headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
FOLLOWED |= {"Sec-Fetch-Dest": "document"}
FRAMED = FOLLOWED | {"Sec-Fetch-Dest": "iframe"}
TWO_LENGTHS = b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"
LOGIN = b"user=carol&password=correct+horse&token="


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Host": "LOCALHOST:PORT"}, 421),  # browsers send it in lower case
        ({"Host": "localhost.:PORT"}, 421),
        ({"Host": "[::1]:PORT"}, 421),
        ({"Host": None}, 400),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),  # another port of this machine
        (FRAMED, 403),
        ({"Sec-Fetch-Site": "same-origin, none"}, 403),
        ({}, 200),
        ({"Host": "localhost:PORT"}, 421),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        # A link on another site that a person follows.
        (FOLLOWED, 200),
    ],
)  # fmt: skip
def test_who_may_read(browser: Browser, headers: Headers, status: int) -> None:
    assert browser.get("/login", _with_port(headers, browser)).status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": None}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "https://127.0.0.1:PORT"}, 403),
        ({"Origin": "http://localhost:PORT"}, 403),
        ({"Origin": "http://127.0.0.1:PORT/"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        (FOLLOWED, 403),
        ({"Host": "evil.example:PORT", "Origin": "http://evil.example:PORT"}, 421),  # DNS rebinding
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json"}, 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ({"Content-Type": None}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({}, 303),
        ({"Host": "localhost:PORT", "Origin": "http://localhost:PORT"}, 421),
        ({"Sec-Fetch-Site": "same-origin"}, 303),
    ],
)  # fmt: skip
def test_who_may_send_a_form(
    browser: Browser, gate: ScriptedGate, headers: Headers, status: int
) -> None:
    token = browser.get("/login").fields["token"].encode()
    answer = browser.ask("POST", "/login", _with_port(headers, browser), LOGIN + token)
    assert answer.status == status
    assert len(gate.logins) == (1 if status == 303 else 0)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", "/login", 405),
        ("DELETE", "/", 405),
        ("OPTIONS", "/", 405),
        ("TRACE", "/", 405),
        ("PATCH", "/approval/A1", 405),
        ("POST", "/", 405),
        ("POST", "/list", 405),
        ("POST", "/events", 405),
        ("HEAD", "/events", 405),
        ("GET", "/logout", 405),  # a GET changes nothing
        ("HEAD", "/login", 200),
        ("GET", "/", 200),
        ("HEAD", "/", 200),
        ("GET", "/static/page.css", 200),
        ("GET", "/static/page.js", 200),
        ("GET", "/static/../main.py", 404),
        ("GET", "/static/%2e%2e%2fmain.py", 404),
        ("GET", "/static/", 404),
        ("GET", "/approval/", 404),
        ("GET", "/approval/A1/", 404),
        ("GET", "/approval/" + "A" * 65, 404),
        ("GET", "/approval/A%0A1", 404),
        ("GET", "/nothing", 404),
        ("GET", "http://127.0.0.1/", 400),  # for a proxy
    ],
)
def test_what_there_is(logged_in: Browser, method: str, path: str, status: int) -> None:
    answer = logged_in.ask(method, path)
    assert answer.status == status
    assert ("allow" in answer.headers) == (status == 405)


@pytest.mark.parametrize("path", ["/", "/login", "/nothing", "/list", "/static/page.js"])
def test_every_answer_says_what_may_be_done_with_it(logged_in: Browser, path: str) -> None:
    headers = logged_in.get(path).headers
    for name, value in HEADERS.items():
        assert headers[name.lower()] == value
    assert "server" not in headers
    assert headers["connection"] == "close"


def test_no_page_has_a_script_or_a_style_of_its_own(logged_in: Browser) -> None:
    for path in ("/", "/login", "/nothing"):
        text = logged_in.get(path).text
        assert text.count("<script") == text.count('<script src="/static/page.js" defer></script>')
        assert "<style" not in text
        assert "style=" not in text
        assert "javascript:" not in text


@pytest.mark.parametrize(
    "line",
    [
        b"GET /login HTTP/1.1\r\nHost: HOST\r\nHost: evil.example\r\n\r\n",
        b"GET /login HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\n\r\n",
        b"GET /login HTTP/1.1\r\nHost: HOST\r\nX: " + b"x" * 8000 + b"\r\n\r\n",
        b"GET /login?" + b"x" * 8000 + b" HTTP/1.1\r\nHost: HOST\r\n\r\n",
        b"GET /login HTTP/1.1\r\nHost: HOST\r\n" + b"X: x\r\n" * 200 + b"\r\n",
        b"GET /login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /login HTTP/1.1\r\nHost: HOST\r\n" + TWO_LENGTHS + b"\r\n0\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"GET /login\r\n\r\n",
    ],
)
def test_what_can_be_read_in_two_ways_is_not_heard(browser: Browser, line: bytes) -> None:
    assert _raw(browser, line).split(b" ")[1][:1] == b"4"
    twin = b"GET /login HTTP/1.1\r\nHost: HOST\r\n\r\n"
    assert _raw(browser, twin).startswith(b"HTTP/1.1 200 ")


def test_a_form_has_16_kib_at_the_most(browser: Browser, gate: ScriptedGate) -> None:
    token = browser.get("/login").fields["token"].encode()
    big = browser.ask("POST", "/login", {}, LOGIN + token + b"&x=" + b"x" * 17000)
    assert big.status == 413
    assert gate.logins == []
    assert browser.ask("POST", "/login", {}, LOGIN + token + b"&x=" + b"x" * 10000).status == 303


def test_who_says_nothing_is_cut_off(browser: Browser) -> None:
    with socket.create_connection(("127.0.0.1", browser.port), timeout=pace.WAIT_S) as silent:
        silent.sendall(b"GET /login HTTP/1.1\r\nHost:")
        assert silent.recv(1) == b""


def test_many_that_say_nothing_keep_nobody_out(browser: Browser) -> None:
    silent = [socket.create_connection(("127.0.0.1", browser.port)) for _ in range(20)]
    try:
        assert browser.get("/login").status == 200
    finally:
        for one in silent:
            one.close()


def test_one_connection_is_for_one_request(browser: Browser) -> None:
    line = b"GET /login HTTP/1.1\r\nHost: HOST\r\n\r\n"
    assert _raw(browser, line * 2).count(b"HTTP/1.1 200 ") == 1


def _with_port(headers: Headers, browser: Browser) -> Headers:
    return {n: v and v.replace("PORT", str(browser.port)) for n, v in headers.items()}


def _raw(browser: Browser, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", browser.port), timeout=pace.WAIT_S) as connection:
        connection.sendall(data.replace(b"HOST", browser.host.encode()))
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer
