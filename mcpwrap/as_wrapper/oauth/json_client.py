"""HTTP client for authorization servers: small JSON answers, with timeout and size limit."""

import asyncio
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp import ClientResponse, ClientSession

from mcpwrap import __version__
from mcpwrap.core.http import www_authenticate
from mcpwrap.core.http.www_authenticate import Challenge
from mcpwrap.core.oauth.errors import OAuthError
from mcpwrap.core.oauth.metadata import expect_https, host

_ANSWER_S = 30.0  # for all of it
_MAX_BYTES = 1024 * 1024
_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"
_ALWAYS = {
    "User-Agent": f"mcpwrap/{__version__}",
    "Accept": _JSON,
    "Accept-Encoding": "identity",
}
# Nothing that changes anything: only the header of its refusal is looked at.
_PROBE = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


class UnreachableError(OAuthError):
    """Error for a request that had no answer. It may have one the next time."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Response, read whole."""

    status: int
    text: bytes

    @property
    def is_good(self) -> bool:
        """Say whether it is what was asked for."""
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class JsonClient:
    """HTTP client that asks by https alone, without cookies, and follows no redirect.

    `http` has neither of its own; `proxy_to` tells which proxy leads to a URL, "" if none.
    """

    http: ClientSession
    proxy_to: Callable[[str], str]

    async def get(self, url: str) -> Reply:
        """Read what is at a URL.

        Raises:
            OAuthError: there was no answer.
        """
        return await self._ask("GET", url, {}, None)

    async def post_form(self, url: str, form: str, authorization: str = "") -> Reply:
        """Send a form.

        Raises:
            OAuthError: there was no answer.
        """
        more = {"Authorization": authorization} if authorization else {}
        return await self._ask("POST", url, {"Content-Type": _FORM, **more}, form.encode())

    async def post_json(self, url: str, text: bytes) -> Reply:
        """Send a JSON document.

        Raises:
            OAuthError: there was no answer.
        """
        return await self._ask("POST", url, {"Content-Type": _JSON}, text)

    async def challenge(self, url: str) -> Challenge:
        """Return what a server says to whoever comes without a token.

        Raises:
            OAuthError: there was no answer.
        """
        headers = {"Content-Type": _JSON, "Accept": f"{_JSON}, text/event-stream"}
        with _explained(url):
            async with asyncio.timeout(_ANSWER_S):
                answer = await self._send("POST", url, headers, _PROBE)
        said = answer.headers.getall("WWW-Authenticate", []) if answer.status == 401 else []
        answer.close()
        return www_authenticate.read(said)

    async def _ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> Reply:
        expect_https(url)
        with _explained(url):
            async with asyncio.timeout(_ANSWER_S):
                answer = await self._send(method, url, headers, body)
                try:
                    text = await answer.content.read(_MAX_BYTES + 1)
                    while len(text) <= _MAX_BYTES and (more := await answer.content.readany()):
                        text += more
                finally:
                    answer.close()
        if len(text) > _MAX_BYTES:
            raise OAuthError(f"{host(url)} answers with more than 1 MiB")
        return Reply(answer.status, text)

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> ClientResponse:
        return await self.http.request(
            method,
            url,
            headers={**_ALWAYS, **headers},
            data=None if body is None else io.BytesIO(body),
            proxy=self.proxy_to(url) or None,
            allow_redirects=False,
        )


@contextmanager
def _explained(url: str) -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is an OSError
        raise UnreachableError(_words(error, host(url))) from error


def _words(error: Exception, whose: str) -> str:
    match error:
        case aiohttp.ClientHttpProxyError(status=403):
            fix = f"add {whose!r} to `egress` of this server, then `sudo mcpwrap apply`"
            what = f"{whose} is not on the allowlist: {fix}"
        case aiohttp.ClientHttpProxyError(status=status):
            what = f"the proxy does not reach {whose} (HTTP {status})"
        case aiohttp.ClientProxyConnectionError():
            what = f"the proxy that leads to {whose} is down"
        case aiohttp.ClientConnectorCertificateError():
            what = f"the certificate of {whose} does not verify"
        case aiohttp.ClientConnectorError():  # of TLS too
            what = f"{whose} cannot be reached"
        case TimeoutError():
            what = f"{whose} does not answer within {_ANSWER_S:.0f} s"
        case _:
            what = f"the answer of {whose} is no HTTP that can be read"
    return what
