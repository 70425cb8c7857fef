"""Failures of a remote server: the agent's error has the cause, but no address and no secret."""

import asyncio
import socket
import zlib

import pytest
from aiohttp import web

from mcpwrap.core.http import upstream_session
from mcpwrap.core.protocol import framing
from mcpwrap.session.remote import dispatcher
from tests.unit.session.remote.world import (
    HELLO,
    Asked,
    accepted,
    agent,
    answer,
    as_usual,
    modern,
    note,
    played,
    request,
    send,
    server,
    stream,
)

TAG: dict[str, object] = {"mcpwrap/headers": {}}
CANARY = "canary-of-the-body"


def _response(**kwargs: object) -> web.Response:
    return web.Response(text=CANARY, **kwargs)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (301, "redirects the request, and redirects are not followed (HTTP 301 Moved Permanently)"),
        (
            307,
            "redirects the request, and redirects are not followed (HTTP 307 Temporary Redirect)",
        ),
        (401, "refuses the credential (HTTP 401 Unauthorized)"),
        (403, "forbids this request (HTTP 403 Forbidden)"),
        (413, "does not accept a message of this size"),
        (418, "refuses the request (HTTP 418 I'm a Teapot)"),
        (429, "limits the rate of requests (HTTP 429 Too Many Requests)"),
        (503, "has failed (HTTP 503 Service Unavailable)"),
        (599, "has failed (HTTP 599)"),
    ],
)
@played
async def test_an_http_error_has_its_cause(status: int, words: str) -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        elsewhere = {"Location": f"http://{asked.http.host}/elsewhere"}
        challenge = {"WWW-Authenticate": 'Bearer realm="x"'} if status == 401 else {}
        return _response(status=status, headers={**elsewhere, **challenge}, reason=CANARY)

    async with server(handle) as there, agent(there.url) as alice:
        heard = await alice.ask(modern(1, _meta=TAG))
        assert words in heard["error"]["message"]
        assert CANARY not in str(heard)
        told = heard["error"].get("data", {}).get("mcpwrap/http")
        challenge = {"www_authenticate": 'Bearer realm="x"'} if status == 401 else {}
        assert told == ({"status": status, **challenge} if status >= 400 else None)
        untagged = await alice.ask(modern(2))
        assert "data" not in untagged["error"]
        assert len(there.seen) == 2  # the redirect was not followed


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (_response, "neither application/json nor text/event-stream"),
        (lambda: _response(content_type="application/json"), "not a message in JSON"),
        (lambda: web.json_response({"jsonrpc": "2.0"}), "ended before its answer"),
        (lambda: web.json_response([1, "x", None]), "ended before its answer"),
        (accepted, "has accepted the request, but sends no response [E-REMOTE-RESPONSE]"),
        (lambda: web.Response(headers={"X": "x" * 9000}), "is not valid HTTP [E-REMOTE-RESPONSE]"),
        (
            lambda: web.json_response({"error": "invalid_token"}, status=400),  # of OAuth
            "refuses the request (HTTP 400 Bad Request)",
        ),
        (
            lambda: web.Response(text="x" * 1_100_000, content_type="application/json", status=400),
            "refuses the request (HTTP 400 Bad Request)",
        ),
        (
            lambda: _response(content_type="application/json", status=400),
            "refuses the request (HTTP 400 Bad Request)",
        ),
    ],
)
@played
async def test_a_response_that_is_not_a_message_is_an_error(
    response: type[web.Response], words: str
) -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        return response()

    async with server(handle) as there, agent(there.url) as alice:
        heard = await alice.ask(modern(1))
        assert words in heard["error"]["message"]
        assert CANARY not in str(heard)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """Set the maximum length of a line to 64 KiB."""
    size = 65_536
    monkeypatch.setattr(framing, "MAX_LINE_BYTES", size)
    monkeypatch.setattr(upstream_session, "MAX_LINE_BYTES", size)
    monkeypatch.setattr("mcpwrap.session.remote.response_body.MAX_LINE_BYTES", size)
    monkeypatch.setattr("mcpwrap.core.http.sse.EventBuffer.__init__.__defaults__", (size,))
    return size


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "gzip", "expands"])
@played
async def test_an_answer_without_end_is_an_error(small: int, kind: str) -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        headers = {"Content-Type": "application/json"}
        if kind == "expands":  # 1e9 becomes 1000000000.0
            text = f'{{"jsonrpc":"2.0","id":1,"result":[{",".join(["1e9"] * (small // 5))}]}}'
            return web.Response(text=text, headers=headers)
        if kind == "gzip":
            bomb = zlib.compressobj(wbits=31)
            body = bomb.compress(b" " * 100 * small) + bomb.flush()
            return web.Response(body=body, headers={**headers, "Content-Encoding": "gzip"})
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(asked.http)
        await response.write(b"data: ")
        while True:
            await response.write(b"x" * 10_000)

    async with server(handle) as there, agent(there.url) as alice:
        assert "longer than 64 MiB" in (await alice.ask(modern(1)))["error"]["message"]


@pytest.mark.parametrize("size", [2_000_000, 30_000_000])
@played
async def test_a_large_message_passes_either_way(size: int) -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        return answer(asked, {"text": asked.body["params"]["text"]})

    async with server(handle) as there, agent(there.url) as alice:
        heard = await alice.ask(modern(1, text="x" * size))
        assert len(heard["result"]["text"]) == size


@played
async def test_a_compressed_response_is_read() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        assert asked.headers["accept-encoding"] == "identity"
        response = answer(asked)
        response.enable_compression(web.ContentCoding.gzip)
        return response

    async with server(handle) as there, agent(there.url) as alice:
        assert (await alice.ask(modern(1)))["result"] == {}


@played
async def test_a_server_that_is_down_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with agent(f"http://127.0.0.1:{port}/") as alice:
        heard = await alice.ask(modern(1, _meta=TAG))
        assert heard["error"] == {
            "code": -32603,
            "message": (
                "The remote server cannot be reached: Connection refused [E-REMOTE-UNREACHABLE]"
            ),
        }
        await alice.say(HELLO)
        assert "Connection refused" in (await alice.hear())["error"]["message"]


@played
async def test_an_unknown_name_is_an_error() -> None:
    async with agent("http://nobody.invalid/") as alice:
        heard = await alice.ask(modern(1))
        message = "The name of the remote server cannot be resolved [E-REMOTE-UNREACHABLE]"
        assert heard["error"]["message"] == message


@played
async def test_the_host_is_named_to_who_wrote_the_url() -> None:
    url = "http://user:pass@nobody.invalid/path?token=s3cret"
    async with agent(url, shown_host="nobody.invalid") as alice:
        heard = await alice.ask(modern(1))
        assert heard["error"]["message"] == (
            "nobody.invalid: The name of the remote server cannot be resolved "
            "[E-REMOTE-UNREACHABLE]"
        )


@played
async def test_a_server_that_hangs_up_is_an_error() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        assert asked.http.transport is not None
        asked.http.transport.abort()
        return accepted()

    async with server(handle) as there, agent(there.url) as alice:
        heard = await alice.ask(modern(1))
        assert "ended before its answer was complete" in heard["error"]["message"]


@played
async def test_too_many_requests_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "_MAX_WAITING", 3)
    monkeypatch.setattr(dispatcher, "_AT_ONCE", 2)
    may_answer = asyncio.Event()

    async def handle(asked: Asked) -> web.StreamResponse:
        await may_answer.wait()
        return answer(asked)

    async with server(handle) as there, agent(there.url) as alice:
        await alice.say(*(modern(n) for n in range(1, 6)))
        heard = await alice.hear()
        assert heard["id"] == 5
        assert (
            "requests wait for the remote server already [E-REMOTE-BUSY]"
            in heard["error"]["message"]
        )
        assert len(there.seen) <= 2
        may_answer.set()
        assert sorted([(await alice.hear())["id"] for _ in range(4)]) == [1, 2, 3, 4]


@played
async def test_a_lost_notification_is_logged(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "notifications/progress":
            return _response(status=500)
        return await as_usual(asked)

    async with server(handle) as there, agent(there.url) as alice:
        await alice.shake_hands()
        await alice.say(note("notifications/progress"))
        await there.next("notifications/progress")
        assert (await alice.ask(request(1)))["id"] == 1
    said = capfd.readouterr().err
    line = "a notification or response of the agent was not delivered: The remote server has failed"
    assert said.startswith(line)
    assert CANARY not in said


@played
async def test_a_line_without_end_ends_the_session(small: int) -> None:
    async with server(as_usual) as there, agent(there.url) as alice:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "mcpwrap.core.protocol.framing.LineBuffer.__init__.__defaults__", (small,)
            )
            await alice.say(modern(1, text="x" * small))
            why = "The agent has sent a line of over 64 MiB [E-SESSION-LINE-TOO-LONG]"
            assert await alice.end() == why


@played
async def test_an_agent_that_has_gone_ends_it() -> None:
    async with server(as_usual) as there, agent(there.url) as alice:
        alice.reader._transport.close()  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        await alice.say(modern(1))
        assert await alice.end() == ""


@played
async def test_an_agent_that_does_not_read_stops_no_other_work() -> None:
    """The agent goes on writing, and reads everything later."""

    async def handle(asked: Asked) -> web.StreamResponse:
        return answer(asked, {"text": "x" * 50_000})

    async with server(handle) as there, agent(there.url) as alice:
        alice.reader._transport.pause_reading()  # type: ignore[attr-defined]
        for n in range(60):
            await alice.say(modern(n, text="y" * 50_000))
        assert len({asked.id for asked in there.seen}) > 30
        alice.reader._transport.resume_reading()  # type: ignore[attr-defined]
        assert {(await alice.hear())["id"] for _ in range(60)} == {*range(60)}


@played
async def test_a_cancelled_request_leaves_no_half_line() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        events = await stream(asked)
        for n in range(20):
            await send(events, note("notifications/message", data="x" * 300_000, number=n))
        await asyncio.sleep(60)
        return events

    async with server(handle) as there, agent(there.url) as alice:
        alice.reader._transport.pause_reading()  # type: ignore[attr-defined]
        await alice.say(modern(1), modern(2))
        for _ in range(2):
            await there.next("tools/call")
        await alice.say(note("notifications/cancelled", requestId=1))
        alice.reader._transport.resume_reading()  # type: ignore[attr-defined]
        heard = [(await alice.hear())["params"]["number"] for _ in range(20)]
        assert heard.count(19) <= 1
        await alice.say(note("notifications/cancelled", requestId=2))


@played
async def test_a_stream_of_ten_thousand_events_loses_none() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        events = await stream(asked)
        for n in range(10_000):
            text = f'{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":{n}}}}}'
            await events.write(f": idle\r\nevent: message\r\ndata: {text}\r\n\r\n".encode())
        await events.write(b'data: {"jsonrpc":"2.0",\ndata: "id":1,"result":{}}\n\n')
        return events

    async with server(handle) as there, agent(there.url) as alice:
        await alice.say(modern(1))
        assert [(await alice.hear())["params"]["data"] for _ in range(10_000)] == [*range(10_000)]
        assert (await alice.hear())["result"] == {}
