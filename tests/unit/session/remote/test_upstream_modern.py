"""Revision 2026-07-28: each request is independent."""

import asyncio
import base64

import pytest
from aiohttp import web

from tests.shared import pace
from tests.unit.session.remote.world import (
    Asked,
    accepted,
    agent,
    answer,
    as_usual,
    error,
    greeted,
    modern,
    note,
    played,
    result,
    send,
    server,
    stream,
)

VERSION = "io.modelcontextprotocol/protocolVersion"


def mcp(asked: Asked) -> dict[str, str]:
    return {name: text for name, text in asked.headers.items() if name.startswith("mcp-")}


@played
async def test_each_request_says_in_its_headers_what_it_is() -> None:
    async with server(as_usual) as there:
        async with agent(there.url) as alice:
            await alice.ask(modern(1, "server/discover"))
            await alice.ask(modern(2, "tools/call", name="caf\u00e9"))
            await alice.ask(modern(3, "resources/read", uri="test://a"))
            await alice.ask(modern(4, "tasks/update", taskId=" t"))
        version = {"mcp-protocol-version": "2026-07-28"}
        cafe = base64.b64encode("caf\u00e9".encode()).decode()
        assert [mcp(asked) for asked in there.seen] == [
            {**version, "mcp-method": "server/discover"},
            {**version, "mcp-method": "tools/call", "mcp-name": f"=?base64?{cafe}?="},
            {**version, "mcp-method": "resources/read", "mcp-name": "test://a"},
            {**version, "mcp-method": "tasks/update", "mcp-name": "=?base64?IHQ=?="},
        ]
        assert there.verbs() == ["POST"] * 4  # no stream, and nothing to end


@played
async def test_headers_of_parameters_are_those_the_agent_sent() -> None:
    async with server(as_usual) as there, agent(there.url) as alice:
        sent = {"Mcp-Param-Region": "eu", "X-Other": "1", "Mcp-Param-Bad": "\u00e9"}
        sent |= {"Mcp-Param-Judged-As": "us"}
        tag = {"mcpwrap/headers": sent}
        await alice.ask(modern(1, name="t", arguments={"a": 1, "region": "eu"}, _meta=tag))
        (asked,) = there.seen
        assert asked.headers["mcp-param-region"] == "eu"
        assert not {"x-other", "mcp-param-bad", "mcp-param-judged-as"} & {*asked.headers}
        assert asked.body["params"]["_meta"] == {VERSION: "2026-07-28"}


@played
async def test_without_them_they_are_made_of_what_the_list_of_tools_said() -> None:
    schema = {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "tools/list":
            return answer(asked, {"tools": [{"name": "t", "inputSchema": schema}]})
        return await as_usual(asked)

    async with server(handle) as there, agent(there.url) as alice:
        await alice.ask(modern(1, "tools/list"))
        await alice.ask(modern(2, name="t", arguments={"region": "eu"}))
        assert there.seen[1].headers["mcp-param-region"] == "eu"
        tag: dict[str, object] = {"mcpwrap/headers": {}}  # an agent that sent none
        await alice.ask(modern(3, name="t", arguments={"region": "eu"}, _meta=tag))
        assert "mcp-param-region" not in there.seen[2].headers


@played
async def test_who_cancels_hangs_up() -> None:
    has_hung_up = asyncio.Event()

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method != "subscriptions/listen":
            return await as_usual(asked)
        events = await stream(asked)
        await send(events, note("notifications/subscriptions/acknowledged"))
        try:
            await asyncio.sleep(60)
        finally:
            has_hung_up.set()
        return events

    async with server(handle) as there, agent(there.url) as alice:
        heard = await alice.ask(modern("listen", "subscriptions/listen"))
        assert heard["method"] == "notifications/subscriptions/acknowledged"
        await alice.say(note("notifications/cancelled", requestId="listen"))
        async with asyncio.timeout(pace.WAIT_S):
            await has_hung_up.wait()
        await alice.say(note("notifications/cancelled", requestId="listen"))  # of nothing
        assert (await alice.ask(modern(2)))["id"] == 2
        assert len(there.seen) == 2


@played
async def test_who_cancels_at_once_has_asked_nothing() -> None:
    async with server(as_usual) as there, agent(there.url) as alice:
        for n in range(1100):
            await alice.say(modern(n), note("notifications/cancelled", requestId=n))
        await alice.say(modern("last"))
        while (await alice.hear())["id"] != "last":  # some may have been answered before
            pass


@played
async def test_a_stream_that_breaks_is_an_error_and_is_not_taken_up() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        events = await stream(asked)
        await events.write(b"id: 1\ndata:\n\n")
        assert asked.http.transport is not None
        asked.http.transport.abort()
        return events

    async with server(handle) as there, agent(there.url) as alice:
        heard = await alice.ask(modern(1))
        assert "ended before its answer was complete" in heard["error"]["message"]
        assert len(there.seen) == 1


@played
async def test_a_stream_that_goes_on_after_its_answer_is_left() -> None:
    is_left = asyncio.Event()

    async def handle(asked: Asked) -> web.StreamResponse:
        events = await stream(asked)
        await send(events, result(asked.id))
        try:
            await asyncio.sleep(60)
        finally:
            is_left.set()
        return events

    async with server(handle) as there, agent(there.url) as alice:
        assert await alice.ask(modern(1)) == result(1)
        async with asyncio.timeout(pace.WAIT_S):
            await is_left.wait()


@pytest.mark.parametrize("status", [200, 400, 404])
@played
async def test_an_error_in_json_rpc_passes_whatever_status_it_has(status: int) -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        body = error(asked.id, -32020, "HeaderMismatch")
        body["error"]["data"] = {"x": 1}
        return web.json_response(body, status=status)

    async with server(handle) as there, agent(there.url) as alice:
        heard = await alice.ask(modern(1, _meta={"mcpwrap/headers": {}}))
        assert heard["error"] == {"code": -32020, "message": "HeaderMismatch", "data": {"x": 1}}


@played
async def test_an_answer_to_another_request_is_none() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.id == 1:
            await asyncio.sleep(60)
        return web.json_response([result(1), result(2), 3])

    async with server(handle) as there, agent(there.url) as alice:
        await alice.say(modern(1), modern(2))
        assert await alice.hear() == result(2)
        await alice.say(note("notifications/cancelled", requestId=1))


@played
async def test_an_agent_may_ask_first_which_era_it_is() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "server/discover":
            return web.json_response(error(None, -32000, "no session"), status=400)
        if asked.method == "initialize":
            return greeted(asked)
        return accepted() if "id" not in (asked.body or {}) else answer(asked)

    async with server(handle) as there, agent(there.url) as alice:
        probe = await alice.ask(modern("probe", "server/discover"))
        assert probe == error("probe", -32000, "no session")
        await alice.say(note("notifications/progress"))  # belongs to no handshake
        await there.next("notifications/progress")
        assert there.seen[-1].headers["mcp-method"] == "notifications/progress"
        assert (await alice.shake_hands())["result"]["protocolVersion"] == "2025-11-25"
