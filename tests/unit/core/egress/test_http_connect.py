"""HTTP CONNECT to Squid: the request, and the meaning of each response."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.egress.http_connect import (
    MAX_HEAD_BYTES,
    HeadIncomplete,
    NotHttp,
    Reply,
    TunnelEstablished,
    TunnelRefused,
    reply,
    request,
)


def test_a_host_is_requested_by_name() -> None:
    expected = b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"
    assert request("a.example") == expected


REPLIES: list[tuple[bytes, Reply]] = [
    (b"", HeadIncomplete()),
    (b"HTTP/1.1 200 Connection established\r\n", HeadIncomplete()),
    (b"HTTP/1.1 200 Connection established\r\n\r\n", TunnelEstablished(b"")),
    (b"HTTP/1.0 204\r\nVia: x\r\n\r\n\x16\3", TunnelEstablished(b"\x16\3")),
    (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", TunnelRefused(403, "Forbidden")),
    (b"HTTP/1.1 503\r\n\r\n", TunnelRefused(503, "")),
    (b"HTTP/1.1 503 \x1b[2J\r\n\r\n", TunnelRefused(503, r"\x1b[2J")),
    (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", TunnelRefused(101, "Switching Protocols")),
    (b"HTTP/2 200 OK\r\n\r\n", NotHttp()),
    (b"HTTP/1.1 999 OK\r\n\r\n", NotHttp()),
    (b"SSH-2.0-x\r\n\r\n", NotHttp()),
    (b"\r\n\r\n", NotHttp()),
    (b"HTTP/1.1 200 OK\r\nx: " + b"x" * MAX_HEAD_BYTES, NotHttp()),
    (b"HTTP/1.1 200 OK\r\nx: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n", NotHttp()),
]


@pytest.mark.parametrize(("untrusted", "meaning"), REPLIES)
def test_a_response_is_parsed(untrusted: bytes, meaning: Reply) -> None:
    assert reply(untrusted) == meaning


@pytest.mark.parametrize(
    ("status", "is_by_rule"), [(403, True), (407, True), (399, False), (502, False), (503, False)]
)
def test_a_rule_is_distinguished_from_an_unreachable_host(status: int, *, is_by_rule: bool) -> None:
    assert TunnelRefused(status, "").is_by_rule() == is_by_rule


@given(st.binary())
def test_no_bytes_break_it(untrusted: bytes) -> None:
    for text in (untrusted, b"HTTP/1.1 " + untrusted, b"HTTP/1.1 403 " + untrusted + b"\r\n\r\n"):
        match reply(text):
            case TunnelRefused(_, reason):
                assert reason.isascii()
            case _:
                pass
