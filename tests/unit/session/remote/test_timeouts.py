"""Timeouts for a slow server: the agent gets an error when one expires, with the reason."""

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from mcpwrap.session.remote import dispatcher, timeouts
from tests.shared import pace
from tests.unit.session.remote.proxy import proxy
from tests.unit.session.remote.world import (
    HELLO,
    INITIALIZED,
    PATIENCE_S,
    Asked,
    accepted,
    agent,
    answer,
    as_usual,
    greeted,
    modern,
    note,
    played,
    request,
    result,
    send,
    server,
    stream,
)

# Short enough to wait for, and long enough for what is answered at once.
SHORT_S = 0.5 * pace.PACE
LATE = "slow"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each timeout short."""
    for module in ("http_client", "response_body"):
        monkeypatch.setattr(f"mcpwrap.session.remote.{module}.HEAD_S", SHORT_S)
    for name in ("GREETING_S", "NOTE_S", "CANCELLED_S"):
        monkeypatch.setattr(timeouts, name, SHORT_S)


class Hung:
    """Handlers that never finish a response; `left` is set when the client disconnects."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    @asynccontextmanager
    async def until_left(self) -> AsyncIterator[None]:
        try:
            yield
            await asyncio.sleep(PATIENCE_S)
        except (asyncio.CancelledError, ConnectionError):
            self.left.set()
            raise

    async def silent(self, _asked: Asked) -> web.StreamResponse:
        async with self.until_left():
            pass
        return accepted()

    async def head_alone(self, asked: Asked) -> web.StreamResponse:
        async with self.until_left():
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(asked.http)
        return response

    async def drop_by_drop(self, asked: Asked) -> web.StreamResponse:
        async with self.until_left():
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(asked.http)
            for _ in range(10_000):
                await response.write(b" ")
                await asyncio.sleep(SHORT_S / 10)
        return response

    async def refused_without_end(self, asked: Asked) -> web.StreamResponse:
        async with self.until_left():
            response = web.StreamResponse(status=500, headers={"Content-Type": "application/json"})
            await response.prepare(asked.http)
        return response

    async def stream_alone(self, asked: Asked) -> web.StreamResponse:
        async with self.until_left():
            return await stream(asked)


SLOW = {
    "silent": f"has sent nothing for {SHORT_S:g} s [E-REMOTE-TIMEOUT]",
    "head_alone": f"begun its response, and not ended it within {SHORT_S:g} s [E-REMOTE-TIMEOUT]",
    "drop_by_drop": f"begun its response, and not ended it within {SHORT_S:g} s [E-REMOTE-TIMEOUT]",
    "refused_without_end": "has failed (HTTP 500 Internal Server Error)",
}


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("way", SLOW)
@pytest.mark.parametrize("call", [modern, request])
@played
async def test_a_timeout_is_an_error_and_closes_the_connection(way: str, call: object) -> None:
    hung = Hung()

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "tools/call" and asked.body["params"].get("name") == LATE:
            slow: web.StreamResponse = await getattr(hung, way)(asked)
            return slow
        return await as_usual(asked)

    async with server(handle) as there, agent(there.url) as alice:
        if call is request:
            await alice.shake_hands()
        asks = modern if call is modern else request
        await alice.say(asks(1, name=LATE), asks(2))
        assert (await alice.hear())["id"] == 2  # other requests go on meanwhile
        heard = await alice.hear()
        assert (heard["id"], heard["error"]["code"]) == (1, -32603)
        assert SLOW[way] in heard["error"]["message"]
        async with asyncio.timeout(PATIENCE_S):
            await hung.left.wait()
        assert (await alice.ask(asks(3)))["id"] == 3


@pytest.mark.parametrize("silent", ["server", "server behind a proxy", "proxy"])
@played
async def test_a_peer_without_a_tls_handshake_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch, silent: str
) -> None:
    monkeypatch.setattr("mcpwrap.session.remote.http_client.CONNECT_S", SHORT_S)
    verify = ssl.create_default_context()
    with socket.create_server(("127.0.0.1", 0)) as silent_server:
        port = silent_server.getsockname()[1]
        async with proxy(port) as between:
            here = f"127.0.0.1:{port}"
            url, by = {
                "server": (f"https://{here}/", ""),
                "server behind a proxy": ("https://far.test/", between.url),
                "proxy": ("https://far.test/", f"http://{here}"),
            }[silent]
            async with agent(url, proxy=by, verify=verify) as alice:
                heard = await alice.ask(modern(1))
    assert "cannot be reached: no connection within 10 s" in heard["error"]["message"]


@pytest.mark.parametrize("way", ["head", "body", "drops"])
@played
async def test_a_slow_response_within_the_timeout_arrives(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    for module in ("http_client", "response_body"):
        monkeypatch.setattr(f"mcpwrap.session.remote.{module}.HEAD_S", PATIENCE_S)

    async def handle(asked: Asked) -> web.StreamResponse:
        if way == "head":
            await asyncio.sleep(SHORT_S)
            return answer(asked)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(asked.http)
        for _ in range(10 if way == "drops" else 1):
            await asyncio.sleep(SHORT_S / 10)
            await response.write(b" ")
        await response.write(json.dumps(result(asked.id)).encode())
        return response

    async with server(handle) as there, agent(there.url) as alice:
        assert await alice.ask(modern(1)) == result(1)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("call", [modern, request])
@played
async def test_a_stream_may_be_silent_for_longer_than_any_limit(call: object) -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method != "tools/call":
            return await as_usual(asked)
        events = await stream(asked)
        await asyncio.sleep(4 * SHORT_S)
        await send(events, result(asked.id))
        return events

    async with server(handle) as there, agent(there.url) as alice:
        if call is request:
            await alice.shake_hands()
        assert await alice.ask((modern if call is modern else request)(1)) == result(1)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("way", ["silent", "stream_alone"])
@pytest.mark.parametrize("greeting", [HELLO, modern(0, "server/discover")])
@played
async def test_a_greeting_has_a_shorter_timeout(
    monkeypatch: pytest.MonkeyPatch, way: str, greeting: dict[str, object]
) -> None:
    monkeypatch.setattr("mcpwrap.session.remote.http_client.HEAD_S", PATIENCE_S)
    hung = Hung()

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.verb != "POST":
            return await as_usual(asked)
        slow: web.StreamResponse = await getattr(hung, way)(asked)
        return slow

    async with server(handle) as there, agent(there.url) as alice:
        heard = await alice.ask(greeting)
        message = f"The remote server has sent nothing for {SHORT_S:g} s [E-REMOTE-TIMEOUT]"
        assert heard["error"]["message"] == message


@pytest.mark.usefixtures("hasty")
@played
async def test_a_notification_without_a_response_delays_requests_only_until_its_timeout(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """All requests wait for the notification that ends the handshake."""
    monkeypatch.setattr("mcpwrap.session.remote.http_client.HEAD_S", PATIENCE_S)
    hung = Hung()

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == INITIALIZED["method"]:
            return await hung.silent(asked)
        return await as_usual(asked)

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        assert (await alice.ask(request(1)))["result"] == {"content": []}
        async with asyncio.timeout(PATIENCE_S):
            await hung.left.wait()
    said = "response of the agent was not delivered: The remote server has sent nothing for"
    assert said in capfd.readouterr().err


# ------------------------------------------------------------------------ cancelled requests
@pytest.mark.usefixtures("hasty")
@played
async def test_a_cancelled_request_expires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that obeys sends nothing more, and many leave the stream open."""
    monkeypatch.setattr(dispatcher, "_AT_ONCE", 1)
    hung = Hung()

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "tools/call" and asked.id == 1:
            return await hung.stream_alone(asked)
        return await as_usual(asked)

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        await alice.say(request(1), note("notifications/cancelled", requestId=1), request(2))
        heard = await alice.hear()
        assert (heard["id"], heard["error"]["message"]) == (1, timeouts.CANCELLED)
        assert (await alice.hear())["id"] == 2  # its limit was used up before
        async with asyncio.timeout(PATIENCE_S):
            await hung.left.wait()


@pytest.mark.usefixtures("hasty")
@played
async def test_the_rest_of_a_cancelled_batch_goes_on() -> None:
    """Requests of a batch that are all cancelled expire one by one."""
    hung = Hung()

    async def handle(asked: Asked) -> web.StreamResponse:
        if not isinstance(asked.body, list):
            usual = asked.method == "initialize"
            return greeted(asked, "2025-03-26") if usual else await as_usual(asked)
        if asked.body[0]["id"] == 3:
            return await hung.stream_alone(asked)
        events = await stream(asked)
        await asyncio.sleep(3 * SHORT_S)
        await send(events, result(2))
        await asyncio.sleep(PATIENCE_S)
        return events

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        await alice.say([request(1), request(2)])
        await alice.say(note("notifications/cancelled", requestId=1))
        heard = await alice.hear()
        assert (heard["id"], heard["error"]["message"]) == (1, timeouts.CANCELLED)
        assert await alice.hear() == result(2)
        await alice.say([request(3), request(4)])
        await alice.say(*(note("notifications/cancelled", requestId=one) for one in (3, 4)))
        assert [(await alice.hear())["id"] for _ in range(2)] == [3, 4]
        async with asyncio.timeout(PATIENCE_S):
            await hung.left.wait()
