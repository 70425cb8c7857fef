"""Access token for the requests of a session, refreshed when it expires or is refused.

The sessions of a server refresh one at a time, under the lock of the token file: a refresh token
may be valid for one use only.
"""

import asyncio
import math
import time

import msgspec

from mcpwrap.as_wrapper.oauth import token_endpoint
from mcpwrap.as_wrapper.oauth.json_client import JsonClient, UnreachableError
from mcpwrap.as_wrapper.oauth.token_endpoint import UNKNOWN_CLIENT, TokenEndpointError
from mcpwrap.as_wrapper.oauth.token_file import Store
from mcpwrap.core.oauth.errors import not_logged_in
from mcpwrap.core.oauth.token_store import OAuthClient, StoredLogin, Tokens
from mcpwrap.core.wire.oauth_session_file import OAuthSessionFile

_OF_NO_USE = UNKNOWN_CLIENT | {"invalid_grant"}
_NOT_AGAIN_S = 30.0  # if the server refuses a new token, another one would not help


class AccessToken:
    """Access token of the next request. `url` is the URL of the server."""

    def __init__(self, given: OAuthSessionFile, url: str, web: JsonClient) -> None:
        self._name = given.name
        self._url = url
        self._web = web
        self._store = Store(given)
        self._renewing: set[asyncio.Future[Tokens]] = set()
        self._renewed_at_s = -math.inf
        self._value_by_key: dict[str, str] = {}

    async def token(self) -> str:
        """Return the access token, refreshed if it expires soon.

        Raises:
            NotLoggedInError: there is no token, and a person has to log in.
            OAuthError: it cannot be refreshed now, or the token file cannot be opened.
        """
        tokens = self._tokens(self._store.read())
        if tokens.is_fresh(time.time()):
            return self._used(tokens)
        try:
            return await self._renewed(tokens.access)
        except UnreachableError:
            if tokens.is_over(time.time()):
                raise
            return self._used(tokens)

    async def instead_of(self, refused: str) -> str:
        """Return another token in place of one that the server has refused.

        Raises:
            NotLoggedInError: a person has to log in.
            OAuthError: as above.
        """
        if time.monotonic() - self._renewed_at_s < _NOT_AGAIN_S:
            raise not_logged_in(self._name, "the remote server refuses a token that is new")
        return await self._renewed(refused)

    def values(self) -> dict[str, str]:
        """Return all tokens that this process has seen, by their names in redacted output."""
        return self._value_by_key

    def _used(self, tokens: Tokens) -> str:
        for kind, value in (("access token", tokens.access), ("refresh token", tokens.refresh)):
            if value and value not in self._value_by_key.values():
                self._value_by_key[f"{kind} {len(self._value_by_key) + 1}"] = value
        return tokens.access

    def _tokens(self, stored: StoredLogin | None) -> Tokens:
        if stored is None or stored.tokens is None:
            raise not_logged_in(self._name)
        if stored.url != self._url:
            raise not_logged_in(self._name, "the login was for another URL")
        return stored.tokens

    async def _renewed(self, stale: str) -> str:
        """Refresh, to its end even if the request is cancelled: the old token is used up then."""
        task = asyncio.ensure_future(self._renew(stale))
        self._renewing.add(task)
        task.add_done_callback(self._renewing.discard)
        return self._used(await asyncio.shield(task))

    async def finish(self) -> None:
        """Wait for a refresh in progress: its response has the only valid refresh token."""
        await asyncio.gather(*self._renewing, return_exceptions=True)

    async def _renew(self, stale: str) -> Tokens:
        async with self._store.lock():
            stored = self._store.read()
            tokens = self._tokens(stored)
            if stored is None or tokens.access != stale:
                return tokens  # another session has refreshed them
            if not tokens.refresh or stored.client is None:
                self._store.write(msgspec.structs.replace(stored, tokens=None))
                raise not_logged_in(self._name, "the login has expired, and cannot be refreshed")
            renewed = await self._request(stored, stored.client, tokens)
            self._store.write(msgspec.structs.replace(stored, tokens=renewed))
        self._renewed_at_s = time.monotonic()
        return renewed

    async def _request(self, stored: StoredLogin, client: OAuthClient, tokens: Tokens) -> Tokens:
        try:
            return await token_endpoint.renew(self._web, stored, client, tokens)
        except TokenEndpointError as refused:
            if refused.code not in _OF_NO_USE:
                raise
            known = None if refused.code in UNKNOWN_CLIENT else client
            self._store.write(msgspec.structs.replace(stored, tokens=None, client=known))
            raise not_logged_in(self._name, "the login was revoked, or has expired") from refused
