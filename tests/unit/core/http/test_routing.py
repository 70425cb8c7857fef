"""Choice of the HTTP response stream for a message from the server."""

import pytest

from mcpwrap.core.http.in_band_tags import UntaggedMessage
from mcpwrap.core.http.routing import STANDALONE, Routes
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Failure, Id, Message, Notification, Request, Result


def _note(method: str, **params: Json) -> Notification:
    return Notification(f"notifications/{method}", params)


def _asked(id_: Id, token: Json = None) -> Request:
    return Request(id_, "tools/call", {"_meta": {"progressToken": token}})


@pytest.fixture
def routes() -> Routes:
    """Return the routes of three requests on two streams."""
    routes = Routes()
    routes.add(1, [_asked(1, "one"), Request("1", "ping", {})])
    routes.add(2, [_asked(2, 0)])
    return routes


@pytest.mark.parametrize(
    ("message", "about", "heard", "stream"),
    [
        (Result(1, {}), None, {1, 2}, 1),
        (Failure("1", {}), None, set(), 1),
        (Result(2, {}), 1, {1, 2}, 2),  # a response is on the stream of its request
        (Result(3, {}), None, {1, 2}, None),
        (_note("progress", progressToken="one"), None, {0, 1, 2}, 1),
        (_note("progress", progressToken=0), None, {0, 1, 2}, 2),
        (_note("progress", progressToken="0"), None, {0, 1, 2}, 0),
        (_note("progress", progressToken=None), None, {1}, 1),
        (_note("message"), 1, {0, 1, 2}, 1),
        (_note("message"), 9, {0, 1, 2}, 2),  # request 9 is not open
        (_note("message"), None, {0, 1, 2}, 2),  # before the response
        (_note("message"), None, {0, 1}, 1),
        (_note("message"), None, {0}, 0),
        (_note("message"), None, set(), 0),
        (Request(7, "sampling/createMessage", {}), None, {0, 1, 2}, 2),
        (Request(7, "roots/list", {}), None, {0}, 0),
        (_note("tools/list_changed"), None, {0, 1, 2}, 0),
        (_note("tools/list_changed"), None, {1, 2}, 2),
        (_note("tools/list_changed"), None, set(), 0),
    ],
)
def test_the_stream_of_a_message(
    routes: Routes, message: Message, about: Id | None, heard: set[int], stream: int | None
) -> None:
    assert routes.route(UntaggedMessage(message, b"", about), heard.__contains__) == stream


def test_an_answered_request_is_forgotten(routes: Routes) -> None:
    assert 1 in routes
    assert routes.open_on(1) == [1, "1"]
    assert routes.stream_of(1) == 1
    assert routes.take(1) == 1
    assert routes.take(1) is None
    assert routes.open_on(1) == ["1"]
    assert routes.stream_of(1) is None
    told = UntaggedMessage(_note("progress", progressToken="one"), b"")
    assert routes.route(told, {1}.__contains__) == 1  # because it alone has a reader
    assert routes.route(told, {STANDALONE, 1}.__contains__) == STANDALONE
