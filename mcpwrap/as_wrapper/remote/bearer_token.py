"""Bearer token of an OAuth login, in the header of each request."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from aiohttp import ClientResponse

from mcpwrap.as_wrapper.oauth.access_token import AccessToken
from mcpwrap.core.http import www_authenticate
from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.core.oauth.errors import OAuthError
from mcpwrap.session.remote.credentials import Credentials

_TOO_LITTLE = (
    "The scopes of the login do not allow this: an administrator of this machine can write more "
    "scopes into `oauth`, and log in again [E-REMOTE-SCOPES]"
)


class Bearer:
    """Authorization header with the token, which is refreshed once if the server refuses it."""

    def __init__(self, access: AccessToken, credentials: Credentials) -> None:
        self._access = access
        self._credentials = credentials

    async def header(self) -> Mapping[str, str]:
        """Return the header of the next request.

        Raises:
            RemoteError: there is no token; the text has the reason.
        """
        with _explained():
            return self._with(await self._access.token())

    async def instead_of(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        """Return another header in place of the one that the server refused.

        Raises:
            RemoteError: there is no other token; the text has the reason.
        """
        with _explained():
            token = refused["Authorization"].removeprefix("Bearer ")
            return self._with(await self._access.instead_of(token))

    def expect_enough(self, answer: ClientResponse) -> None:
        """Raise an error for a response about the login, which the agent cannot fix.

        Raises:
            RemoteError: the server requires another login, or more scopes.
        """
        if answer.status == 401:
            raise RemoteError(
                "The remote server refuses a new token of the login [E-REMOTE-TOKEN-REFUSED]"
            )
        challenge = www_authenticate.read(answer.headers.getall("WWW-Authenticate", []))
        if answer.status == 403 and challenge.error == "insufficient_scope":
            raise RemoteError(_TOO_LITTLE)

    async def finish(self) -> None:
        """Wait for requests to the authorization server that are in flight."""
        await self._access.finish()

    def _with(self, token: str) -> Mapping[str, str]:
        self._credentials.remember(self._access.values())
        return {"Authorization": f"Bearer {token}"}


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except OAuthError as error:
        raise RemoteError(f"No token for the remote server: {error}") from error
