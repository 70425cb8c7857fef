"""OAuth discovery: all locations of an authorization server's metadata, and the errors there."""

import asyncio
import socket
import ssl

import pytest
from aiohttp import ClientSession, TCPConnector, web

from mcpwrap.as_wrapper.oauth import json_client as module
from mcpwrap.as_wrapper.oauth.discovery import discover
from mcpwrap.as_wrapper.oauth.json_client import JsonClient
from mcpwrap.core.oauth.errors import OAuthError
from mcpwrap.core.wire.login_pipe import LoginDone, LoginFailed
from tests.unit.as_wrapper.oauth.world import World

RESOURCE = "/.well-known/oauth-protected-resource/mcp"
OAUTH = "/.well-known/oauth-authorization-server"


def why(outcome: LoginDone | LoginFailed) -> str:
    assert isinstance(outcome, LoginFailed)
    return outcome.failed


def test_a_server_of_before_2025_06_18_is_its_own_authorization_server(there: World) -> None:
    """It has no resource metadata, and the issuer metadata is at its origin."""
    there.server.ways.says_where = False
    there.server.ways.missing = (RESOURCE,)
    there.server.ways.issuer = there.server.base
    there.server.ways.issuer_at = OAUTH
    assert isinstance(there.log_in(), LoginDone)
    assert there.server.asked[-1]["resource"] == there.server.mcp_url


def test_resource_metadata_that_is_missing(there: World) -> None:
    there.server.ways.missing = (RESOURCE,)
    assert "has no metadata at the URL that it names" in why(there.log_in())


def test_an_authorization_server_without_metadata(there: World) -> None:
    there.server.ways.missing = (f"{OAUTH}/tenant",)
    assert "has no metadata of an authorization server" in why(there.log_in())


def test_metadata_of_openid_connect(there: World) -> None:
    there.server.ways.missing = (f"{OAUTH}/tenant",)
    there.server.ways.issuer_at = "/tenant/.well-known/openid-configuration"
    assert isinstance(there.log_in(), LoginDone)


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (403, b"", "refused to register mcpwrap"),
        (201, b"{", "unusable data"),
        (201, b"{}", "unusable data"),
    ],
)
def test_a_registration_that_fails(there: World, status: int, text: bytes, expected: str) -> None:
    there.server.ways.register_answer = status, text
    assert expected in why(there.log_in())


# -------------------------------------------------------------------------- network failures
async def asked(there: World, proxy: str = "", trusted: ssl.SSLContext | None = None) -> str:
    """Return why discovery failed."""
    connector = TCPConnector(ssl=trusted or there.trusted)
    async with ClientSession(connector=connector) as http:
        try:
            await discover(JsonClient(http, lambda _: proxy), there.server.mcp_url)
        except OAuthError as error:
            return str(error)
    return ""


def proxied(there: World, status: int) -> str:
    """Discover through a proxy that answers CONNECT with a status."""

    async def refuse(request: web.BaseRequest) -> web.Response:
        return web.Response(status=status)

    async def run() -> str:
        runner = web.ServerRunner(web.Server(refuse))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            return await asked(there, f"http://127.0.0.1:{runner.addresses[0][1]}")
        finally:
            await runner.cleanup()

    return asyncio.run(run())


def test_a_host_that_is_not_listed_is_named(there: World) -> None:
    host = there.server.base.removeprefix("https://")
    assert proxied(there, 403) == (
        f"{host} is not on the allowlist: add '{host}' to `egress` of this server, "
        "then `sudo mcpwrap apply` [E-OAUTH-EGRESS]"
    )
    unreachable = f"the proxy cannot reach {host} (HTTP 503) [E-OAUTH-UNREACHABLE]"
    assert proxied(there, 503) == unreachable


def test_a_proxy_that_is_down(there: World) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        proxy = f"http://127.0.0.1:{closed.getsockname()[1]}"
        assert "the proxy for localhost" in asyncio.run(asked(there, proxy))


def test_a_certificate_that_does_not_verify(there: World) -> None:
    said = asyncio.run(asked(there, trusted=ssl.create_default_context()))
    assert "the certificate of localhost" in said


def test_a_server_that_never_answers(there: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ANSWER_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        there.server.base = f"https://localhost:{silent.getsockname()[1]}"
        assert "did not answer" in asyncio.run(asked(there))


def test_a_server_without_http(there: World, monkeypatch: pytest.MonkeyPatch) -> None:
    there.server.base = there.server.base.replace("https", "http")  # to a port of TLS
    assert "is not valid HTTP" in asyncio.run(asked(there))


def test_the_metadata_of_an_application_is_found(there: World) -> None:
    assert asyncio.run(asked(there)) == ""
