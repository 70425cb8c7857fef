"""HTTP client for authorization servers: JSON responses, with timeout and size limit."""

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

_ANSWER_S = 30.0  # for the whole response
_MAX_BYTES = 1024 * 1024
_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"
_ALWAYS = {
    "User-Agent": f"mcpwrap/{__version__}",
    "Accept": _JSON,
    "Accept-Encoding": "identity",
}
# A request that changes nothing: only the header of its refusal is read.
_PROBE = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


class UnreachableError(OAuthError):
    """Failure of a request that got no response. A retry may get one."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Complete response."""

    status: int
    text: bytes

    @property
    def is_good(self) -> bool:
        """Return whether the request succeeded."""
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class JsonClient:
    """HTTP client that uses only https, sends no cookies, and follows no redirect.

    `http` keeps no cookies of its own; `proxy_to` returns the proxy for a URL, "" if none.
    """

    http: ClientSession
    proxy_to: Callable[[str], str]

    async def get(self, url: str) -> Reply:
        """Send a GET request.

        Raises:
            OAuthError: there was no usable response.
        """
        return await self._request("GET", url, {}, None)

    async def post_form(self, url: str, form: str, authorization: str = "") -> Reply:
        """Send a form by POST.

        Raises:
            OAuthError: there was no usable response.
        """
        more = {"Authorization": authorization} if authorization else {}
        return await self._request("POST", url, {"Content-Type": _FORM, **more}, form.encode())

    async def post_json(self, url: str, text: bytes) -> Reply:
        """Send a JSON document by POST.

        Raises:
            OAuthError: there was no usable response.
        """
        return await self._request("POST", url, {"Content-Type": _JSON}, text)

    async def challenge(self, url: str) -> Challenge:
        """Return the server's challenge to a request without a token.

        Raises:
            OAuthError: there was no response.
        """
        headers = {"Content-Type": _JSON, "Accept": f"{_JSON}, text/event-stream"}
        with _explained(url):
            async with asyncio.timeout(_ANSWER_S):
                answer = await self._send("POST", url, headers, _PROBE)
        values = answer.headers.getall("WWW-Authenticate", []) if answer.status == 401 else []
        answer.close()
        return www_authenticate.read(values)

    async def _request(
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
            raise OAuthError(f"{host(url)} sent a response of over 1 MiB [E-OAUTH-RESPONSE]")
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
        raise UnreachableError(_reason(error, host(url))) from error


def _reason(error: Exception, name: str) -> str:
    match error:
        case aiohttp.ClientHttpProxyError(status=403):
            fix = f"add {name!r} to `egress` of this server, then `sudo mcpwrap apply`"
            reason = f"{name} is not on the allowlist: {fix} [E-OAUTH-EGRESS]"
        case aiohttp.ClientHttpProxyError(status=status):
            reason = f"the proxy cannot reach {name} (HTTP {status}) [E-OAUTH-UNREACHABLE]"
        case aiohttp.ClientProxyConnectionError():
            reason = f"the proxy for {name} is down [E-OAUTH-UNREACHABLE]"
        case aiohttp.ClientConnectorCertificateError():
            reason = f"the certificate of {name} does not verify [E-OAUTH-CERTIFICATE]"
        case aiohttp.ClientConnectorError():  # of TLS too
            reason = f"{name} cannot be reached [E-OAUTH-UNREACHABLE]"
        case TimeoutError():
            reason = f"{name} did not answer within {_ANSWER_S:.0f} s [E-OAUTH-UNREACHABLE]"
        case _:
            reason = f"the response of {name} is not valid HTTP [E-OAUTH-RESPONSE]"
    return reason
