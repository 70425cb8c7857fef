"""Streamable HTTP of 2025-03-26, 2025-06-18 and 2025-11-25."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from tests.unit.session.remote.world import (
    HELLO,
    INITIALIZED,
    Asked,
    accepted,
    agent,
    answer,
    as_usual,
    error,
    greeted,
    note,
    played,
    request,
    result,
    send,
    server,
    stream,
)

TAG: dict[str, Any] = {"_meta": {"mcpwrap/headers": {}}}


@played
async def test_a_session_from_its_beginning_to_its_end() -> None:
    async with server(as_usual) as there:
        async with agent(there.url) as alice:
            assert (await alice.shake_hands())["result"]["protocolVersion"] == "2025-11-25"
            assert await alice.ask(request("a", name="echo")) == result("a", {"content": []})
            await there.next("GET")
            assert await alice.leave() == ""
        first = there.seen[0].headers
        assert first["accept"] == "application/json, text/event-stream"
        assert first["content-type"] == "application/json"
        assert not {"mcp-session-id", "mcp-protocol-version", "mcp-method", "cookie"} & {*first}
        for later in there.seen[1:]:
            assert later.headers["mcp-session-id"] == "s-1"
            assert later.headers["mcp-protocol-version"] == "2025-11-25"
            assert "mcp-method" not in later.headers
        assert there.verbs()[-1] == "DELETE"
        assert there.verbs().count("GET") == 1  # 405: not requested again


@played
async def test_messages_keep_their_order_up_to_the_end_of_the_handshake() -> None:
    async def slow(asked: Asked) -> web.StreamResponse:
        if asked.method != "tools/call":
            await asyncio.sleep(0.05)
        return await as_usual(asked)

    async with server(slow) as there, agent(there.url) as alice:
        await alice.say(HELLO, INITIALIZED, request(1))
        assert [(await alice.hear())["id"] for _ in range(2)] == [0, 1]
        posts = [asked.method for asked in there.seen if asked.verb == "POST"]
        assert posts == ["initialize", "notifications/initialized", "tools/call"]


@played
async def test_many_requests_are_under_way_at_once_and_each_has_its_own_answer() -> None:
    all_came = asyncio.Event()
    came = 0

    async def handle(asked: Asked) -> web.StreamResponse:
        nonlocal came
        if asked.method != "tools/call":
            return await as_usual(asked)
        came += 1
        if came == 100:
            all_came.set()
        await all_came.wait()
        return answer(asked, {"n": asked.id})

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        await alice.say(*(request(n) for n in range(1, 101)))
        heard = [await alice.hear() for _ in range(100)]
    assert sorted(one["id"] for one in heard) == list(range(1, 101))
    assert all(one["id"] == one["result"]["n"] for one in heard)


@played
async def test_what_comes_before_an_answer_passes_as_it_comes() -> None:
    may_answer = asyncio.Event()

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method != "tools/call":
            return await as_usual(asked)
        events = await stream(asked)
        await send(events, note("notifications/progress", progress=1))
        await send(events, request("s-1", "roots/list"))
        await may_answer.wait()
        await send(events, result(asked.id))
        return events

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        progress = await alice.ask(request(1))
        assert progress == note("notifications/progress", progress=1)
        assert (await alice.hear())["method"] == "roots/list"
        await alice.say(result("s-1", {"roots": []}))  # goes out while the request is open
        assert (await there.next("an answer")).body == result("s-1", {"roots": []})
        may_answer.set()
        assert await alice.hear() == result(1)


@played
async def test_a_listener_learns_on_whose_stream_a_message_came() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.verb == "GET":
            events = await stream(asked)
            await send(events, note("notifications/tools/list_changed"))
            await asyncio.sleep(60)
        if asked.method != "tools/call":
            return await as_usual(asked)
        events = await stream(asked)
        await send(events, note("notifications/message", data=1, _meta={"x": 1}))
        await send(events, {"jsonrpc": "2.0", "id": 5, "method": "roots/list"})
        await send(events, result(asked.id))
        return events

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        assert await alice.hear() == note("notifications/tools/list_changed")  # of no request
        message = await alice.ask(request(7, name="x", **TAG))
        assert message["params"]["_meta"] == {"x": 1, "mcpwrap/for": 7}
        assert (await alice.hear())["params"] == {"_meta": {"mcpwrap/for": 7}}
        assert await alice.hear() == result(7)
        called = await there.next("tools/call")
        assert called.body["params"] == {"name": "x"}  # the tag is ours


@played
async def test_a_stream_is_taken_up_where_it_ended() -> None:
    """2025-11-25: a server may close the stream, and the client requests it again."""
    asked_again: list[str] = []

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.verb == "GET" and "last-event-id" in asked.headers:
            asked_again.append(asked.headers["last-event-id"])
            if len(asked_again) == 1:
                return web.Response(status=503)  # for the moment
            events = await stream(asked)
            if len(asked_again) == 2:
                await send(events, note("notifications/message", data=2), "id: e2\n")
            else:
                await send(events, result(9), "id: e3\n")
            return events
        if asked.method != "tools/call":
            return await as_usual(asked)
        events = await stream(asked)
        await events.write(b"id: e1\nretry: 5\ndata:\n\n")
        return events

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        assert (await alice.ask(request(9)))["method"] == "notifications/message"
        assert await alice.hear() == result(9)
    assert asked_again == ["e1", "e1", "e2"]


@played
async def test_a_listener_is_told_that_a_stream_has_ended_so_that_its_agent_asks_again() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.verb == "GET" and "last-event-id" in asked.headers:
            return await _told(asked, result(9))
        if asked.method != "tools/call":
            return await as_usual(asked)
        events = await stream(asked)
        await events.write(b"id: e1\nretry: 5\ndata:\n\n")
        return events

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        word = await alice.ask(request(9, **TAG))
        assert word["params"]["_meta"] == {"mcpwrap/for": 9, "mcpwrap/closed": True}
        assert await alice.hear() == result(9)
        assert await alice.ask(request(9)) == result(9)  # of a request whose stream is not known


async def _told(asked: Asked, message: dict[str, Any]) -> web.StreamResponse:
    events = await stream(asked)
    await send(events, message, "id: e2\n")
    return events


@pytest.mark.parametrize(
    ("events", "status", "why"),
    [
        (b"", 200, "ended before its answer"),  # no ID to resume from
        (b"retry: 1\nid: a\ndata:\n\n", 200, "ended before its answer"),  # nothing new at each try
        (b"retry: 1\nid: a\ndata:\n\n", 405, "refuses the request (HTTP 405 Method Not Allowed)"),
        (b"retry: 1\nid: a\ndata:\n\n", 500, "has failed (HTTP 500 Internal Server Error)"),
        (b"retry: 1\nid: \x01\ndata:\n\n", 200, "ended before"),  # no header holds it
        (b"data: {}}\n\n", 200, "not a message in JSON"),
    ],
)
@played
async def test_a_stream_that_cannot_be_taken_up_is_an_error(
    events: bytes, status: int, why: str
) -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.verb == "GET" and "last-event-id" in asked.headers:
            return await stream(asked) if status == 200 else web.Response(status=status)
        if asked.method != "tools/call":
            return await as_usual(asked)
        response = await stream(asked)
        await response.write(events)
        return response

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        heard = await alice.ask(request(1))
        assert heard["id"] == 1
        assert why in heard["error"]["message"]
        assert heard["error"]["code"] == -32603


@played
async def test_a_stream_may_be_refused_in_json_rpc_when_it_is_taken_up() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.verb == "GET" and "last-event-id" in asked.headers:
            return web.json_response(error(None, -32000, "too old"), status=400)
        if asked.method != "tools/call":
            return await as_usual(asked)
        events = await stream(asked)
        await events.write(b"id: e1\nretry: 5\ndata:\n\n")
        return events

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        assert await alice.ask(request(9)) == error(9, -32000, "too old")


@played
async def test_the_stream_of_what_comes_unasked_is_opened_again() -> None:
    asked_from: list[str] = []

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.verb != "GET":
            return await as_usual(asked)
        asked_from.append(asked.headers.get("last-event-id", ""))
        if len(asked_from) == 2:
            return web.Response(status=502)
        events = await stream(asked)
        number = len(asked_from)
        head = f"retry: 1\nid: {number}\n"
        await events.write(b"event: other\ndata: x\n\ndata: no JSON\n\n")
        await send(events, note("notifications/message", data=number), head)
        return events

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        heard = [(await alice.hear())["params"]["data"] for _ in range(2)]
    assert heard == [1, 3]
    assert asked_from[:3] == ["", "1", "1"]


@played
async def test_a_session_that_the_server_has_ended_ends_with_words() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "tools/call" and asked.id == 2:
            return web.json_response(error("server-error", -32600, "x"), status=404)
        if asked.method == "tools/call":
            await asyncio.sleep(60)
        return await as_usual(asked)

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        await alice.say(request(1, **TAG))
        await there.next("tools/call")
        await alice.say(request(2))
        heard = [await alice.hear(), await alice.hear()]
        assert [one["id"] for one in heard] == [1, 2]
        assert all("has ended the session" in one["error"]["message"] for one in heard)
        # By this an agent that uses HTTP knows that it has to begin a new session.
        assert heard[0]["error"]["data"] == {"mcpwrap/http": {"status": 404}}
        assert "must begin a new one" in await alice.end()


@played
async def test_a_server_without_sessions_may_know_nothing_of_something() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "initialize":
            return greeted(asked, session="")
        if asked.method == "prompts/list":
            return web.Response(status=404)
        return await as_usual(asked)

    async with server(handle) as there:
        async with agent(there.url) as alice:
            await alice.shake_hands()
            heard = await alice.ask(request(1, "prompts/list"))
            assert "has nothing at its URL (HTTP 404 Not Found)" in heard["error"]["message"]
            assert (await alice.ask(request(2)))["result"] == {"content": []}
        assert "DELETE" not in there.verbs()


@played
async def test_batches_pass_both_ways() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "initialize":
            return greeted(asked, "2025-03-26")
        if isinstance(asked.body, list):
            answers: list[Any] = [result(one["id"]) for one in asked.body if "id" in one]
            return web.json_response([note("notifications/message", data=1), *answers])
        return await as_usual(asked)

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        await alice.say([request(1, **TAG), note("notifications/roots/list_changed"), request(2)])
        first, *answers = await alice.hear()
        assert first["params"]["_meta"] == {"mcpwrap/for": 1}
        assert answers == [result(1), result(2)]
        sent = there.seen[-1].body
        assert sent[0] == {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        assert there.seen[-1].headers["mcp-protocol-version"] == "2025-03-26"


@played
async def test_where_there_are_no_batches_an_array_is_cut_into_lines() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method != "tools/call":
            return await as_usual(asked)
        return web.json_response([note("notifications/message", data=1), result(asked.id)])

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        assert (await alice.ask(request(1)))["method"] == "notifications/message"
        assert await alice.hear() == result(1)


@played
async def test_a_request_that_is_cancelled_is_not_hung_up_on() -> None:
    cancelled = asyncio.Event()

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "notifications/cancelled":
            cancelled.set()
            return accepted()
        if asked.method != "tools/call":
            return await as_usual(asked)
        await cancelled.wait()
        return answer(asked)

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        await alice.say(request(1), note("notifications/cancelled", requestId=1))
        assert await alice.hear() == result(1)


@played
async def test_what_is_still_under_way_when_the_agent_leaves_may_yet_be_answered() -> None:
    may_answer = asyncio.Event()

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "tools/call" and asked.id == 1:
            await may_answer.wait()
        elif asked.method == "tools/call":
            await asyncio.sleep(60)
        return await as_usual(asked)

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        await alice.say(request(1), request(2))
        await there.next("tools/call")
        alice.hang_up()
        may_answer.set()
        assert (await alice.hear())["result"] == {"content": []}
        assert (await alice.hear())["error"]["message"] == "The session has ended"
        assert await alice.end() == ""


@played
async def test_a_second_handshake_begins_a_new_session() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.verb == "GET":
            await asyncio.sleep(60)
        return greeted(asked, session=f"s{asked.id}") if "id" in (asked.body or {}) else accepted()

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        await there.next("GET")
        await alice.ask({**HELLO, "id": 1})
        assert "mcp-session-id" not in there.seen[-1].headers
        await alice.say(INITIALIZED)
        assert (await there.next("GET")).headers["mcp-session-id"] == "s1"


@played
async def test_a_session_whose_id_no_header_holds_is_refused() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        return greeted(asked, session="\u00e9")

    async with server(handle) as there, agent(there.url) as alice:
        assert "header cannot hold" in (await alice.ask(HELLO))["error"]["message"]
