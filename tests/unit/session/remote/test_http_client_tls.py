"""TLS certificates, and the proxy for outgoing connections."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from yarl import URL

from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.session.remote.http_client import trusted, upstream_target
from tests.unit.session.remote.proxy import proxy
from tests.unit.session.remote.world import agent, as_usual, modern, played, server

NOW = datetime.now(UTC)
CANARY = "canary-of-the-credential"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def serving(
    authority: trustme.CA, *names: str, not_after: datetime | None = None
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(
        *names,
        not_before=NOW - timedelta(days=9) if not_after else None,
        not_after=not_after,
    ).configure_cert(context)
    return context


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    path = tmp_path / "headers.json"
    path.write_text(f'{{"Authorization": "Bearer {CANARY}"}}')
    return path


@played
async def test_a_credential_goes_through_the_proxy_and_not_to_it(
    authority: trustme.CA, ca_file: str, headers: Path
) -> None:
    async with server(as_usual, serving(authority, "mcp.example")) as there:
        port = int(URL(there.url).port or 0)
        async with (
            proxy(port) as proxied,
            agent(
                "https://mcp.example/mcp",
                proxy=proxied.url,
                verify=trusted(ca_file),
                headers=headers,
            ) as alice,
        ):
            assert "result" in await alice.ask(modern(1))
            assert there.seen[0].headers["authorization"] == f"Bearer {CANARY}"
            (head,) = proxied.heads
            assert head.startswith(b"CONNECT mcp.example:443 HTTP/1.1\r\n")
            assert CANARY.encode() not in head


@pytest.mark.parametrize(
    ("name", "not_after", "is_known", "words"),
    [
        ("mcp.example", None, True, ""),
        ("mcp.example", NOW - timedelta(days=1), True, "has expired"),
        ("other.example", None, True, "is for another name"),
        ("mcp.example", None, False, "is issued by an authority that this machine does not trust"),
    ],
)
@played
async def test_a_certificate_that_does_not_verify_is_an_error(
    name: str,
    not_after: datetime | None,
    words: str,
    authority: trustme.CA,
    ca_file: str,
    headers: Path,
    *,
    is_known: bool,
) -> None:
    issuer = authority if is_known else trustme.CA()
    async with server(as_usual, serving(issuer, name, not_after=not_after)) as there:
        async with (
            proxy(int(URL(there.url).port or 0)) as proxied,
            agent(
                "https://mcp.example/",
                proxy=proxied.url,
                verify=trusted(ca_file),
                headers=headers,
            ) as alice,
        ):
            heard = await alice.ask(modern(1))
        message = heard.get("error", {}).get("message", "")
        assert message.endswith(words and f"{words} [E-REMOTE-CERTIFICATE]")
        assert bool(there.seen) == (not words)


@played
async def test_a_certificate_for_another_address_is_an_error(
    authority: trustme.CA, ca_file: str
) -> None:
    async with (
        server(as_usual, serving(authority, "mcp.example")) as there,
        agent(there.url, verify=trusted(ca_file)) as alice,
    ):
        heard = await alice.ask(modern(1))
        assert heard["error"]["message"].endswith("is for another address [E-REMOTE-CERTIFICATE]")


@played
async def test_a_server_without_tls_is_an_error(ca_file: str) -> None:
    async with server(as_usual) as there:
        url = there.url.replace("http:", "https:")
        async with agent(url, verify=trusted(ca_file)) as alice:
            heard = await alice.ask(modern(1))
            words = "or the server does not use TLS [E-REMOTE-UNREACHABLE]"
            assert heard["error"]["message"].endswith(words)


@pytest.mark.parametrize(
    ("status", "words", "name"),
    [
        (403, "does not allow this server to reach its URL: see `mcpwrap egress`", "EGRESS"),
        (503, "cannot reach the remote server (HTTP 503 Service Unavailable)", "UNREACHABLE"),
        (407, "refuses the connection (HTTP 407 Proxy Authentication Required)", "UNREACHABLE"),
    ],
)
@played
async def test_what_the_proxy_refuses_is_an_error(
    status: int, words: str, name: str, ca_file: str
) -> None:
    async with (
        proxy(0, status) as proxied,
        agent("https://mcp.example/", proxy=proxied.url, verify=trusted(ca_file)) as alice,
    ):
        heard = await alice.ask(modern(1))
        assert heard["error"]["message"] == f"The proxy {words} [E-REMOTE-{name}]"


@played
async def test_without_its_proxy_it_reaches_nothing(ca_file: str) -> None:
    async with proxy(0) as closed:
        url = closed.url
    async with agent("https://mcp.example/", proxy=url, verify=trusted(ca_file)) as alice:
        heard = await alice.ask(modern(1))
        words = "The proxy to the remote server is down: Connection refused [E-REMOTE-UNREACHABLE]"
        assert heard["error"]["message"] == words


@pytest.mark.parametrize(
    ("url", "proxy_used"),
    [
        ("https://mcp.example/mcp", "http://127.77.0.1:3128"),
        ("http://mcp.example/mcp", ""),
        ("https://10.0.0.1:8443/", ""),
    ],
)
def test_the_proxy_is_that_of_the_variables(
    url: str, proxy_used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://127.77.0.1:3128")
    monkeypatch.setenv("no_proxy", "10.0.0.1")
    assert upstream_target(url).proxy == proxy_used


@pytest.mark.parametrize("url", ["", "ftp://x/", "/mcp", "https:///x", "http://[x"])
def test_an_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(RemoteError, match="is not an HTTP URL"):
        upstream_target(url)


def test_certificates_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="certificates of the authorities cannot be read"):
        trusted(str(tmp_path / "none"))
