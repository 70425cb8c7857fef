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
from mcpwrap.as_wrapper.remote.credentials import Credentials
from mcpwrap.as_wrapper.remote.error_mapping import CONNECT_S, mapped_errors
from mcpwrap.as_wrapper.remote.timeouts import HEAD_S, SILENT, time_limit
from mcpwrap.core.http.upstream_errors import RemoteError

EVENT_STREAM = "text/event-stream"
JSON = "application/json"
_FIRST = {
    "User-Agent": f"mcpwrap/{__version__}",
    "Accept": f"{JSON}, {EVENT_STREAM}",
    # What is compressed is read too; but what passes through a compressor waits in it.
    "Accept-Encoding": "identity",
}
_NO_URL = "The URL of the remote server is none of HTTP"
_NONE_LEFT_S = 4.0  # Node and uvicorn end an idle connection after 5 s; a POST is not sent twice


@dataclass(frozen=True, slots=True)
class UpstreamTarget:
    """URL of the server, and the proxy that leads there; "" for none."""

    url: URL
    proxy: str


def upstream_target(url: str) -> UpstreamTarget:
    """Return where a URL leads from here, by the variables that each program knows.

    Raises:
        RemoteError: it is no URL of HTTP.
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
    """Return what verifies certificates: by the authorities in a file, or the system's.

    Raises:
        RemoteError: the file cannot be read.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise RemoteError(f"The authorities' certificates cannot be read: {error}") from error


def session(verify: ssl.SSLContext | None) -> ClientSession:
    """Return what connects: without cookies, `.netrc` or a bound of its own on streams."""
    return ClientSession(
        connector=TCPConnector(limit=0, ssl=verify or True, keepalive_timeout=_NONE_LEFT_S),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None, connect=CONNECT_S),
        trust_env=False,
    )


class TokenSource(Protocol):
    """Token of a login. Most servers have none, and never load the code: see `bearer_token`."""

    async def header(self) -> Mapping[str, str]:
        """Return what the next request is sent with; RemoteError if there is no token."""

    async def instead_of(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        """Return another header than the one that was refused; RemoteError if there is none."""

    def expect_enough(self, answer: ClientResponse) -> None:
        """Refuse an answer that is about the login; RemoteError says so."""

    async def finish(self) -> None:
        """Wait for what is under way."""


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
        self._http = http
        self._credentials = credentials

    @asynccontextmanager
    async def post(
        self, body: bytes, headers: Mapping[str, str], url: URL | None = None
    ) -> AsyncIterator[ClientResponse]:
        """Send a message.

        Raises:
            RemoteError: no answer began.
        """
        told = {**headers, "Content-Type": JSON}
        async with self._send("POST", url or self.url, told, body) as answer:
            yield answer

    @asynccontextmanager
    async def listen(self, headers: Mapping[str, str]) -> AsyncIterator[ClientResponse]:
        """Ask for a stream of events.

        Raises:
            RemoteError: no answer began.
        """
        told = {**headers, "Accept": EVENT_STREAM}
        async with self._send("GET", self.url, told, None) as answer:
            yield answer

    async def end(self, headers: Mapping[str, str]) -> None:
        """End a session.

        Raises:
            RemoteError: there was no answer.
        """
        async with self._send("DELETE", self.url, headers, None):
            pass

    @asynccontextmanager
    async def _send(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None
    ) -> AsyncIterator[ClientResponse]:
        told = CIMultiDict(_FIRST)
        told.update(self._credentials.headers())
        told.update(headers)
        answer = await self._answer(method, url, told, body)
        try:
            yield answer
        finally:
            answer.release()  # which closes the connection of what was not read to its end

    async def _answer(
        self, method: str, url: URL, told: CIMultiDict[str], body: bytes | None
    ) -> ClientResponse:
        """Return an answer that is not about the token of a login, where there is one."""
        if self._bearer is None:
            return await self._ask(method, url, told, body)
        token = await self._bearer.header()
        told.update(token)
        answer = await self._ask(method, url, told, body)
        if answer.status == 401:
            answer.close()
            told.update(await self._bearer.instead_of(token))
            answer = await self._ask(method, url, told, body)
        try:
            self._bearer.expect_enough(answer)
        except RemoteError:
            answer.close()
            raise
        return answer

    async def _ask(
        self, method: str, url: URL, told: CIMultiDict[str], body: bytes | None
    ) -> ClientResponse:
        data = None if body is None else io.BytesIO(body)
        with mapped_errors():
            async with time_limit(HEAD_S, SILENT):
                return await self._http.request(
                    method, url, headers=told, data=data, proxy=self._proxy, allow_redirects=False
                )


def kind_of(answer: ClientResponse) -> str:
    """Return its media type in small letters, "" if it says none."""
    return answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
