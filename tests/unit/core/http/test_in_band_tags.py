"""In-band tags between listener and remote program: neither agent nor server receives them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.http.in_band_tags import (
    HttpAnswer,
    http_refusal,
    remove_tags,
    stream_closed,
    take_headers,
    with_headers,
    with_stream,
)
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Decoded, Id, Notification, Request, Sender, decode
from mcpwrap.core.protocol.strict_json import encode
from tests.unit.core.json_values import FINITE, KEYS


def _from_server(message: Json) -> Decoded:
    decoded = decode(encode(message), Sender.SERVER, 0)
    assert isinstance(decoded, Decoded)
    return decoded


@pytest.mark.parametrize(
    ("params", "sent"),
    [
        ({}, {"_meta": {"mcpwrap/headers": {"a": "b"}}}),
        ({"x": 1, "_meta": {"p": 2}}, {"x": 1, "_meta": {"p": 2, "mcpwrap/headers": {"a": "b"}}}),
        ({"_meta": {"mcpwrap/headers": "mine"}}, {"_meta": {"mcpwrap/headers": {"a": "b"}}}),
        ({"_meta": 7}, {"_meta": {"mcpwrap/headers": {"a": "b"}}}),
    ],
)
def test_headers_are_added_as_a_tag(params: dict[str, Json], sent: Json) -> None:
    told = msgspec.json.decode(with_headers(Request("i", "tools/call", params), {"a": "b"}))
    assert told == {"jsonrpc": "2.0", "id": "i", "method": "tools/call", "params": sent}
    told = msgspec.json.decode(with_headers(Notification("notifications/x", params), {"a": "b"}))
    assert told == {"jsonrpc": "2.0", "method": "notifications/x", "params": sent}


@pytest.mark.parametrize(
    ("params", "shown", "about", "is_closed"),
    [
        ({"x": 1}, {"x": 1}, None, False),
        ({"_meta": {"mcpwrap/for": 7}}, None, 7, False),
        ({"_meta": {"mcpwrap/for": "a", "p": 1}}, {"_meta": {"p": 1}}, "a", False),
        ({"_meta": {"mcpwrap/for": 7, "mcpwrap/closed": True}}, None, 7, True),
        ({"_meta": {"mcpwrap/for": [7]}, "x": 1}, {"x": 1}, None, False),
        ({"_meta": {"mcpwrap/headers": {}}}, None, None, False),
        ({"x": '"mcpwrap/for"'}, {"x": '"mcpwrap/for"'}, None, False),
        ({"_meta": {"x": "mcpwrap/for"}}, {"_meta": {"x": "mcpwrap/for"}}, None, False),
    ],
)
def test_the_tag_of_the_stream_is_removed(
    params: Json, shown: Json, about: Id | None, *, is_closed: bool
) -> None:
    expected: dict[str, Json] = {} if shown is None else {"params": shown}
    head: dict[str, Json] = {"jsonrpc": "2.0", "method": "notifications/message"}
    told = remove_tags(_from_server(head | {"params": params}))
    assert msgspec.json.decode(told.json) == head | expected
    assert (told.about, told.is_closed) == (about, is_closed)
    head = {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}
    told = remove_tags(_from_server(head | {"params": params}))
    assert msgspec.json.decode(told.json) == head | expected
    assert told.about == about


@pytest.mark.parametrize(
    ("data", "shown", "http"),
    [
        (None, None, None),
        ({"x": 1}, {"x": 1}, None),
        ({"mcpwrap/http": {"status": 401}}, None, HttpAnswer(401)),
        (
            {"mcpwrap/http": {"status": 401, "www_authenticate": 'Bearer realm="x"'}, "x": 1},
            {"x": 1},
            HttpAnswer(401, 'Bearer realm="x"'),
        ),
        (
            {"mcpwrap/http": {"status": 503, "www_authenticate": "a\r\nSet-Cookie: b"}},
            None,
            HttpAnswer(503),
        ),
        ({"mcpwrap/http": {"status": 503, "www_authenticate": "é"}}, None, HttpAnswer(503)),
        ({"mcpwrap/http": {"status": 200}}, None, None),
        ({"mcpwrap/http": {"status": True}}, None, None),
        ({"mcpwrap/http": "401"}, None, None),
    ],
)
def test_the_tag_of_the_http_status_is_removed(
    data: Json, shown: Json, http: HttpAnswer | None
) -> None:
    error: dict[str, Json] = {"code": -32603, "message": "no"}
    full = error | ({} if data is None else {"data": data})
    told = remove_tags(_from_server({"jsonrpc": "2.0", "id": 1, "error": full}))
    expected = error | ({} if shown is None else {"data": shown})
    assert msgspec.json.decode(told.json) == {"jsonrpc": "2.0", "id": 1, "error": expected}
    assert told.http == http


def test_a_result_is_left_alone() -> None:
    message: Json = {"jsonrpc": "2.0", "id": 1, "result": {"_meta": {"mcpwrap/for": 7}}}
    assert msgspec.json.decode(remove_tags(_from_server(message)).json) == message


IDS = st.integers(0, 99) | st.text("ab-\u00e9", min_size=1, max_size=4)
PARAMS = st.dictionaries(KEYS, FINITE, max_size=3)
HEADERS = st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3)


@given(PARAMS, HEADERS)
def test_the_remote_program_removes_the_tag_of_the_listener(
    params: dict[str, Json], headers: dict[str, str]
) -> None:
    sent = msgspec.json.decode(with_headers(Request(1, "tools/call", params), headers))
    rest, tag = take_headers(sent)
    assert tag == headers
    assert rest.get("params", {}) == params
    assert take_headers(rest) == (rest, None)


@given(PARAMS, IDS)
def test_the_listener_removes_the_tag_of_the_remote_program(
    params: dict[str, Json], request_id: Id
) -> None:
    message: dict[str, Json] = {"jsonrpc": "2.0", "method": "notifications/x", "params": params}
    found = remove_tags(_from_server(with_stream(message, request_id)))
    assert (found.about, found.is_closed) == (request_id, False)
    assert found.message == Notification("notifications/x", params)

    found = remove_tags(_from_server(stream_closed(request_id)))
    assert (found.about, found.is_closed) == (request_id, True)


@pytest.mark.parametrize("challenge", ["", "Bearer", 'Bearer scope="a b"'])
def test_an_http_error_is_the_same_at_both_ends(challenge: str) -> None:
    data: Json = http_refusal(403, challenge)
    error: Json = {"code": -32603, "message": "x", "data": data}
    found = remove_tags(_from_server({"jsonrpc": "2.0", "id": 1, "error": error}))
    assert found.http == HttpAnswer(403, challenge)
