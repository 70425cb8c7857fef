"""HTTP+SSE of 2024-11-05: one stream carries all responses."""

import asyncio

import pytest
from aiohttp import web

from mcpwrap.session.remote import standalone_stream
from tests.unit.session.remote.world import (
    HELLO,
    Asked,
    accepted,
    agent,
    error,
    note,
    played,
    request,
    result,
    send,
    server,
    stream,
)


class Old:
    """Server of 2024-11-05. `endpoint` is its URL for messages; its stream ends on `end`."""

    def __init__(self, endpoint: str = "/messages?session=1", status: int = 405) -> None:
        self.endpoint = endpoint
        self.status = status
        self.end = asyncio.Event()
        self.events: web.StreamResponse | None = None

    async def __call__(self, asked: Asked) -> web.StreamResponse:
        if asked.verb == "GET":
            self.events = await stream(asked)
            if self.endpoint:
                head = f"event: endpoint\ndata: {self.endpoint}\n\n"
                await self.events.write(head.encode() * 2)  # the second changes nothing
            await self.end.wait()
            return self.events
        if asked.http.path != "/messages":
            return web.Response(status=self.status)
        if "id" in asked.body:
            asyncio.get_running_loop().call_soon(asyncio.ensure_future, self._answer(asked))
        return web.Response(status=500) if asked.method == "prompts/list" else accepted()

    async def _answer(self, asked: Asked) -> None:
        assert self.events is not None
        if asked.method == "tools/call":
            await send(self.events, note("notifications/message", data=1), "event: message\n")
        if asked.method not in {"prompts/list", "tools/list"}:
            value = {"protocolVersion": "2024-11-05"} if asked.method == "initialize" else {}
            await send(self.events, result(asked.id, value))


@pytest.mark.parametrize("status", [400, 404, 405])
@played
async def test_a_session_with_an_old_server(status: int) -> None:
    async with server(Old(status=status)) as there:
        async with agent(there.url) as alice:
            assert (await alice.shake_hands())["result"]["protocolVersion"] == "2024-11-05"
            heard = await alice.ask(request(1, _meta={"mcpwrap/headers": {}}))
            assert heard == note("notifications/message", data=1)
            assert await alice.hear() == result(1)
            refused = await alice.ask(request(2, "prompts/list"))
            assert "has failed" in refused["error"]["message"]
        assert there.verbs().count("GET") == 1
        assert "DELETE" not in there.verbs()
        assert {asked.http.path_qs for asked in there.seen[2:]} == {"/messages?session=1"}


@pytest.mark.parametrize("endpoint", ["http://elsewhere.example/m", "//e.example/m", "http://[x"])
@played
async def test_nothing_is_sent_to_another_server(endpoint: str) -> None:
    async with server(Old(endpoint)) as there, agent(there.url) as alice:
        heard = await alice.ask(HELLO)
        words = "The remote server names a URL at another server for messages [E-REMOTE-RESPONSE]"
        assert heard["error"]["message"] == words
        assert there.verbs() == ["POST", "GET"]


@played
async def test_its_stream_is_its_session() -> None:
    old = Old()
    async with server(old) as there, agent(there.url) as alice:
        await alice.shake_hands()
        await alice.say(request(1, "tools/list"))
        await there.next("tools/list")
        old.end.set()
        assert "has ended the session" in (await alice.hear())["error"]["message"]
        assert "has ended the session" in await alice.end()


@pytest.mark.parametrize("ends", [True, False])
@played
async def test_one_that_never_says_where_is_an_error(
    monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    monkeypatch.setattr(standalone_stream, "_ENDPOINT_S", 30.0 if ends else 0.1)
    old = Old("")
    if ends:
        old.end.set()
    async with server(old) as there, agent(there.url) as alice:
        words = (await alice.ask(HELLO))["error"]["message"]
        assert words.startswith("The remote server")


@pytest.mark.parametrize("status", [400, 404, 405])
@played
async def test_one_that_has_no_such_stream_either_keeps_its_error(status: int) -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        return web.Response(status=status)

    async with server(handle) as there, agent(there.url) as alice:
        assert f"(HTTP {status}" in (await alice.ask(HELLO))["error"]["message"]


@played
async def test_one_that_answers_in_json_rpc_is_not_old() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        return web.json_response(error(None, -32600, "no"), status=400)

    async with server(handle) as there, agent(there.url) as alice:
        assert await alice.ask(HELLO) == error(0, -32600, "no")
        assert there.verbs() == ["POST"]
