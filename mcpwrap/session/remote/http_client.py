"""HTTP client of a remote server: one request, with credentials, proxy, TLS and timeout."""

import io
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol
from urllib.request import getproxies, proxy_bypass

from aiohttp import ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from multidict import CIMultiDict
from yarl import URL

from mcpwrap import __version__
from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.session.remote.credentials import Credentials
from mcpwrap.session.remote.error_mapping import CONNECT_S, mapped_errors
from mcpwrap.session.remote.timeouts import HEAD_S, SILENT, time_limit

EVENT_STREAM = "text/event-stream"
JSON = "application/json"
_FIRST = {
    "User-Agent": f"mcpwrap/{__version__}",
    "Accept": f"{JSON}, {EVENT_STREAM}",
    # Compressed responses are read too, but a compressor delays the events of a stream.
    "Accept-Encoding": "identity",
}
_NO_URL = "The URL of the remote server is not an HTTP URL [E-REMOTE-URL]"
_KEEPALIVE_S = 4.0  # Node and uvicorn end an idle connection after 5 s; a POST is not repeated


@dataclass(frozen=True, slots=True)
class UpstreamTarget:
    """URL of the server, and its proxy; "" for none."""

    url: URL
    proxy: str
    shown_host: str = ""  # in errors; "" if the agent is not to know it


def upstream_target(url: str) -> UpstreamTarget:
    """Return the target of a URL, with the proxy by the usual environment variables.

    Raises:
        RemoteError: it is not an HTTP URL.
    """
    try:
        parsed = URL(url)
    except ValueError as error:
        raise RemoteError(_NO_URL) from error
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise RemoteError(_NO_URL)
    by_scheme = getproxies()
    if proxy_bypass(f"{parsed.host}:{parsed.port}"):
        return UpstreamTarget(parsed, "")
    return UpstreamTarget(parsed, by_scheme.get(parsed.scheme, ""))


def trusted(ca_file: str | None) -> ssl.SSLContext:
    """Return a TLS context with the certificate authorities of a file, or of the system.

    Raises:
        RemoteError: the file cannot be read.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise RemoteError(
            f"The certificates of the authorities cannot be read: {error} [E-REMOTE-CA-FILE]"
        ) from error


def session(verify: ssl.SSLContext | None) -> ClientSession:
    """Return an HTTP session without cookies, `.netrc`, or a timeout of its own on streams."""
    return ClientSession(
        connector=TCPConnector(limit=0, ssl=verify or True, keepalive_timeout=_KEEPALIVE_S),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None, connect=CONNECT_S),
        trust_env=False,
    )


class TokenSource(Protocol):
    """Interface of a login's token. Most servers have none, and never load `bearer_token`."""

    async def header(self) -> Mapping[str, str]:
        """Return the header of the next request; raise RemoteError without a token."""

    async def instead_of(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        """Return another header than the refused one; raise RemoteError without one."""

    def expect_enough(self, answer: ClientResponse) -> None:
        """Raise RemoteError for a response about the login."""

    async def finish(self) -> None:
        """Wait for requests that are in flight."""


class UpstreamClient:
    """HTTP client of one server."""

    def __init__(
        self,
        here: UpstreamTarget,
        http: ClientSession,
        credentials: Credentials,
        bearer: TokenSource | None = None,
    ) -> None:
        self.url = here.url
        self._bearer = bearer
        self._proxy = here.proxy or None
        self._shown_host = here.shown_host
        self._http = http
        self._credentials = credentials

    @asynccontextmanager
    async def post(
        self, body: bytes, headers: Mapping[str, str], url: URL | None = None
    ) -> AsyncIterator[ClientResponse]:
        """Send a message by POST.

        Raises:
            RemoteError: no response began.
        """
        sent = {**headers, "Content-Type": JSON}
        async with self._send("POST", url or self.url, sent, body) as answer:
            yield answer

    @asynccontextmanager
    async def listen(self, headers: Mapping[str, str]) -> AsyncIterator[ClientResponse]:
        """Request an event stream by GET.

        Raises:
            RemoteError: no response began.
        """
        sent = {**headers, "Accept": EVENT_STREAM}
        async with self._send("GET", self.url, sent, None) as answer:
            yield answer

    async def end(self, headers: Mapping[str, str]) -> None:
        """End a session by DELETE.

        Raises:
            RemoteError: there was no response.
        """
        async with self._send("DELETE", self.url, headers, None):
            pass

    @asynccontextmanager
    async def _send(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None
    ) -> AsyncIterator[ClientResponse]:
        sent = CIMultiDict(_FIRST)
        sent.update(self._credentials.headers())
        sent.update(headers)
        answer = await self._answer(method, url, sent, body)
        try:
            yield answer
        finally:
            answer.release()  # closes the connection if the response was not read to its end

    async def _answer(
        self, method: str, url: URL, sent: CIMultiDict[str], body: bytes | None
    ) -> ClientResponse:
        """Return the response, after a refresh of the token if the server refused it."""
        if self._bearer is None:
            return await self._request(method, url, sent, body)
        token = await self._bearer.header()
        sent.update(token)
        answer = await self._request(method, url, sent, body)
        if answer.status == 401:
            answer.close()
            sent.update(await self._bearer.instead_of(token))
            answer = await self._request(method, url, sent, body)
        try:
            self._bearer.expect_enough(answer)
        except RemoteError:
            answer.close()
            raise
        return answer

    async def _request(
        self, method: str, url: URL, sent: CIMultiDict[str], body: bytes | None
    ) -> ClientResponse:
        data = None if body is None else io.BytesIO(body)
        with mapped_errors(self._shown_host):
            async with time_limit(HEAD_S, SILENT):
                return await self._http.request(
                    method, url, headers=sent, data=data, proxy=self._proxy, allow_redirects=False
                )


def kind_of(answer: ClientResponse) -> str:
    """Return the media type of a response in lower case, "" if it has none."""
    return answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
