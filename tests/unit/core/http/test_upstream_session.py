"""State of a remote session: matching of responses to requests, and routing of messages."""

import json

import pytest

from mcpwrap.core.http import upstream_request
from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.core.http.upstream_session import Exchange, UpstreamSession
from mcpwrap.core.protocol.json_value import Json

VERSION = "io.modelcontextprotocol/protocolVersion"


def begin(conversation: UpstreamSession, message: Json) -> Exchange:
    return conversation.begin(upstream_request.read(json.dumps(message).encode()))


def hear(conversation: UpstreamSession, message: Json, exchange: Exchange | None = None) -> Json:
    """Return what the agent receives: one message, or a list of them."""
    lines = conversation.received(json.dumps(message).encode(), exchange)
    assert all(line.endswith(b"\n") for line in lines)
    heard: list[Json] = [json.loads(line) for line in lines]
    return heard[0] if len(heard) == 1 else heard


def request(request_id: Json, method: str = "tools/call", meta: Json = None) -> Json:
    params: Json = {} if meta is None else {"_meta": meta}
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def result(request_id: Json, value: Json = None) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "result": {} if value is None else value}


def shaken(version: str = "2025-06-18") -> UpstreamSession:
    conversation = UpstreamSession()
    exchange = begin(conversation, request(0, "initialize"))
    conversation.see_session(exchange.line, "s")
    hear(conversation, result(0, {"protocolVersion": version}), exchange)
    return conversation


def test_each_request_has_one_response() -> None:
    conversation = shaken()
    exchange = begin(conversation, request(1))
    assert hear(conversation, result(1), exchange) == result(1)
    assert hear(conversation, result(1), exchange) == []
    assert conversation.fail(exchange, RemoteError("late")) == []
    assert conversation.find(1) is None


@pytest.mark.parametrize("answered", ["1", 1.0, True, None, 2, "x" * 300])
def test_a_response_has_the_same_id(answered: Json) -> None:
    conversation = shaken()
    exchange = begin(conversation, request(1))
    assert hear(conversation, result(answered), exchange) == []
    assert exchange.waiting == {1}


def test_an_error_without_an_id_is_for_the_only_open_request() -> None:
    conversation = shaken()
    failure: dict[str, Json] = {"jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": "m"}}
    exchange = begin(conversation, request("a"))
    assert hear(conversation, failure, exchange) == {**failure, "id": "a"}
    assert hear(conversation, failure, exchange) == []
    batch = begin(conversation, [request("b"), request("c")])
    assert hear(conversation, failure, batch) == []  # of which request?


def test_in_the_handshake_era_a_response_may_come_on_any_stream() -> None:
    conversation = shaken()
    begin(conversation, request(1))
    other = begin(conversation, request(2))
    assert hear(conversation, result(1), other) == result(1)
    assert hear(conversation, result(2), None) == result(2)


def test_since_2026_it_comes_on_its_own_stream_only() -> None:
    conversation = UpstreamSession()
    one = begin(conversation, request(1, meta={VERSION: "2026-07-28"}))
    other = begin(conversation, request(2, meta={VERSION: "2026-07-28"}))
    old = begin(conversation, request(3))
    assert hear(conversation, result(1), other) == []
    assert hear(conversation, result(1), old) == []
    assert hear(conversation, result(3), other) == []
    assert hear(conversation, result(1), None) == []
    assert hear(conversation, result(1), one) == result(1)


def test_a_revision_that_is_not_a_text_is_ignored() -> None:
    conversation = UpstreamSession()
    exchange = begin(conversation, request(0, "initialize"))
    hear(conversation, result(0, {"protocolVersion": 3}), exchange)
    assert not conversation.has_handshake
    assert conversation.headers(begin(conversation, request(1)).line) == {}


def test_a_batch_without_requests_has_no_stream() -> None:
    conversation = shaken("2025-03-26")
    note: Json = {"jsonrpc": "2.0", "method": "notifications/progress"}
    exchange = begin(conversation, [note])
    assert exchange.stream_of() is None
    assert hear(conversation, note, exchange) == note


def test_a_tagged_stream_keeps_its_tag_after_the_response() -> None:
    conversation = shaken()
    exchange = begin(conversation, request(1, meta={"mcpwrap/headers": {}}))
    hear(conversation, result(1), exchange)
    heard = hear(conversation, {"jsonrpc": "2.0", "method": "n"}, exchange)
    assert heard == {"jsonrpc": "2.0", "method": "n", "params": {"_meta": {"mcpwrap/for": 1}}}


@pytest.mark.parametrize(
    "text",
    [b"", b"x", b"[]", b"{}", b'{"error": "invalid_token"}', b'{"jsonrpc": "2.0", "error": {}}'],
)
def test_an_http_error_is_a_response_only_in_json_rpc(text: bytes) -> None:
    conversation = shaken()
    exchange = begin(conversation, request(1))
    assert conversation.refused(text, exchange) == []
    assert exchange.waiting == {1}


def test_an_http_error_in_json_rpc_is_for_all_open_requests() -> None:
    conversation = shaken("2025-03-26")
    exchange = begin(conversation, [request(1), request(2), request(3)])
    hear(conversation, result(2), exchange)
    failure = {"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "m"}}
    lines = conversation.refused(json.dumps(failure).encode(), exchange)
    assert [json.loads(line) for line in lines] == [{**failure, "id": 1}, {**failure, "id": 3}]
    assert exchange.waiting == set()


def test_an_id_that_is_used_again_is_of_the_later_request() -> None:
    conversation = shaken()
    first, second = begin(conversation, request(1)), begin(conversation, request(1))
    conversation.drop(first)
    assert conversation.find(1) is second
