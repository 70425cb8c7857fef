"""Parsing of a line for a remote server."""

import json

import pytest

from mcpwrap.core.http import in_band_tags, upstream_request
from mcpwrap.core.http.upstream_request import HandshakeStep, UpstreamRequest
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.strict_json import NotJsonError

VERSION = "io.modelcontextprotocol/protocolVersion"
ENVELOPE: Json = {VERSION: "2026-07-28"}


def read(message: Json) -> UpstreamRequest:
    return upstream_request.read(json.dumps(message).encode())


def request(method: str, params: Json = None) -> Json:
    said: dict[str, Json] = {"jsonrpc": "2.0", "id": 1, "method": method}
    return said if params is None else {**said, "params": params}


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "t", "uri": "u"}, "t"),
        ("prompts/get", {"name": "p"}, "p"),
        ("resources/read", {"uri": "u", "name": "n"}, "u"),
        ("tasks/get", {"taskId": "x"}, "x"),
        ("tasks/cancel", {"taskId": "x"}, "x"),
        ("tasks/update", {"taskId": "x"}, "x"),
        ("tools/call", {"name": 1}, None),
        ("tools/call", {}, None),
        ("resources/subscribe", {"uri": "u"}, None),
        ("tools/list", {"name": "x"}, None),
    ],
)
def test_the_name_is_that_of_the_target(method: str, params: Json, name: str | None) -> None:
    assert read(request(method, params)).name == name


@pytest.mark.parametrize(
    ("message", "step"),
    [
        (request("initialize", {}), HandshakeStep.INITIALIZE),
        (
            request("initialize", {"_meta": ENVELOPE}),
            HandshakeStep.OTHER,
        ),  # the modern era has no handshake
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, HandshakeStep.INITIALIZED),
        (request("ping"), HandshakeStep.OTHER),
    ],
)
def test_which_step_of_the_handshake_it_is(message: Json, step: HandshakeStep) -> None:
    assert read(message).step is step


def test_a_response_has_no_request() -> None:
    line = read({"jsonrpc": "2.0", "id": 3, "result": {}})
    assert line.is_answer()
    assert line.method_by_id == {}
    assert not read({"jsonrpc": "2.0", "method": "notifications/cancelled"}).is_answer()


@pytest.mark.parametrize(
    ("params", "bare", "headers"),
    [
        ({"_meta": {"mcpwrap/headers": {"Mcp-Param-A": "1"}}}, None, {}),
        (
            {"arguments": {"a": 1}, "_meta": {"mcpwrap/headers": {"Mcp-Param-A": "1"}}},
            {"arguments": {"a": 1}},
            {"mcp-param-a": "1"},
        ),
        ({"a": 1, "_meta": {"mcpwrap/headers": {}, "b": 2}}, {"a": 1, "_meta": {"b": 2}}, {}),
        ({"a": 1, "_meta": {"mcpwrap/headers": 7}}, {"a": 1}, {}),
        ({"_meta": {}}, {"_meta": {}}, None),
        ({"_meta": 1}, {"_meta": 1}, None),
    ],
)
def test_the_tag_is_removed(params: Json, bare: Json, headers: dict[str, str] | None) -> None:
    line = read(request("tools/call", params))
    assert json.loads(line.body) == request("tools/call", bare)
    assert line.param_headers == headers
    assert line.tagged == (() if headers is None else (1,))


def test_a_batch_is_parsed() -> None:
    tag: Json = {"_meta": {"mcpwrap/headers": {}}}
    answer: Json = {"jsonrpc": "2.0", "id": 9, "result": {}}
    line = read(
        [request("ping"), {"jsonrpc": "2.0", "id": 2, "method": "x", "params": tag}, answer]
    )
    assert line.method_by_id == {1: "ping", 2: "x"}
    assert line.tagged == (2,)
    assert b"mcpwrap" not in line.body


@pytest.mark.parametrize("text", [b"1", b'"x"', b"{", b"null"])
def test_a_line_that_is_not_a_message_is_refused(text: bytes) -> None:
    with pytest.raises(NotJsonError):
        upstream_request.read(text)


@pytest.mark.parametrize(
    ("params", "tagged"),
    [
        ({}, {"params": {"_meta": {"mcpwrap/for": 1}}}),
        ({"params": {"_meta": {"a": 1}}}, {"params": {"_meta": {"a": 1, "mcpwrap/for": 1}}}),
        ({"params": {"_meta": 3, "a": 1}}, {"params": {"_meta": {"mcpwrap/for": 1}, "a": 1}}),
        ({"params": []}, {"params": []}),
    ],
)
def test_a_message_is_tagged_with_its_stream(params: dict[str, Json], tagged: Json) -> None:
    assert in_band_tags.with_stream(params, 1) == tagged


@pytest.mark.parametrize(
    ("challenge", "is_sent"),
    [("Bearer x", True), ("", False), ("Bearer\nx", False), ("x" * 3000, False)],
)
def test_a_challenge_is_sent_if_it_is_printable(challenge: str, is_sent: bool) -> None:  # noqa: FBT001
    told = in_band_tags.http_refusal(401, challenge)
    expected: Json = {"status": 401, **({"www_authenticate": challenge} if is_sent else {})}
    assert told == {"mcpwrap/http": expected}
