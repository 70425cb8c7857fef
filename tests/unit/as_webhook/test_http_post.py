"""Webhook posts: signed, retried for a while, and sent to no other receiver."""

import asyncio
import socket
import ssl
import time

import pytest
import trustme
from aiohttp import web

from mcpwrap.as_webhook import http_post
from mcpwrap.as_webhook.http_post import Poster, Text
from mcpwrap.as_webhook.rate_limited_log import RateLimitedLog
from mcpwrap.core.notify.webhook_post import signature
from tests.unit.as_webhook.receiver import receiver

KEY = b"k" * 32
IN_A_MINUTE_S = 60.0


def text(*, until_s: float | None = None, wanted: int = 100) -> Text:
    """Return a text that is wanted for `wanted` attempts."""
    left = iter([True] * wanted)
    until_s = time.time() + IN_A_MINUTE_S if until_s is None else until_s
    return Text(b'{"a":1}', until_s, lambda: next(left, False))


async def post(url: str, what: Text) -> None:
    async with http_post.session() as http:
        await Poster(url, KEY, http, RateLimitedLog()).post(what, pause_s=0.001)


async def attempts(*statuses: int, what: Text | None = None) -> int:
    async with receiver(*statuses) as there:
        await post(there.url, what or text())
        return there.came.qsize()


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([204], 1),
        ([200], 1),
        ([503, 200], 2),
        ([500, 429, 408, 204], 4),
        ([400], 1),  # a retry would not help
        ([401, 204], 1),
        ([302], 1),  # to a host that root did not name
        ([307], 1),
    ],
)
def test_only_temporary_failures_are_retried(statuses: list[int], expected: int) -> None:
    assert asyncio.run(attempts(*statuses)) == expected


def test_an_answered_approval_is_not_retried() -> None:
    assert asyncio.run(attempts(503, 503, 503, what=text(wanted=2))) == 2


def test_an_expired_approval_is_not_retried() -> None:
    assert asyncio.run(attempts(503, 503, what=text(until_s=time.time()))) == 1


def test_each_attempt_is_signed_anew() -> None:
    async def story() -> None:
        async with receiver(503) as there:
            await post(there.url, text())
            for _ in range(2):
                headers, body = await there.came.get()
                at = headers["Mcpwrap-Signature"].removeprefix("t=").partition(",")[0]
                assert abs(int(at) - time.time()) < IN_A_MINUTE_S
                assert headers["Mcpwrap-Signature"] == signature(KEY, int(at), body)
                assert headers["Content-Type"] == "application/json"
                assert "Cookie" not in headers

    asyncio.run(story())


def test_a_failure_is_logged_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    asyncio.run(post(f"http://127.0.0.1:{port}", text(wanted=5)))
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("the webhook did not accept a POST: ClientConnector")


def test_a_recovery_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(attempts(503, 204))
    assert capsys.readouterr().err.splitlines() == [
        ("the webhook did not accept a POST: HTTP status 503; it is retried [E-WEBHOOK-POST]"),
        "the webhook accepts posts again",
    ]


def test_an_untrusted_certificate_gets_no_post(
    capsys: pytest.CaptureFixture[str],
) -> None:
    came = []

    async def take(request: web.Request) -> web.Response:
        came.append(request)
        return web.Response()

    async def story() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
        app = web.Application()
        app.router.add_post("/", take)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        await post(f"https://127.0.0.1:{runner.addresses[0][1]}/", text(wanted=1))
        await runner.cleanup()

    asyncio.run(story())
    assert not came
    assert "CertificateError" in capsys.readouterr().err
