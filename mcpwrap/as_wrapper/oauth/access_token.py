"""Access token of a session's requests, refreshed when it expires or is refused.

The sessions of a server refresh one at a time, under the lock of the token file: a refresh token
may be good for one use only.
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
_NOT_AGAIN_S = 30.0  # a server that refuses new tokens is not a reason to ask for more


class AccessToken:
    """Access token of the next request. `url` is that of the server."""

    def __init__(self, given: OAuthSessionFile, url: str, web: JsonClient) -> None:
        self._name = given.name
        self._url = url
        self._web = web
        self._store = Store(given)
        self._renewing: set[asyncio.Future[Tokens]] = set()
        self._renewed_at_s = -math.inf
        self._value_by_key: dict[str, str] = {}

    async def token(self) -> str:
        """Return the access token, renewed if it ends soon.

        Raises:
            NotLoggedInError: there is none, and a person has to log in.
            OAuthError: it cannot be had just now, or what is kept does not open.
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
        """Return another token than this one, which the server has refused.

        Raises:
            NotLoggedInError: a person has to log in.
            OAuthError: as above.
        """
        if time.monotonic() - self._renewed_at_s < _NOT_AGAIN_S:
            raise not_logged_in(self._name, "the remote server refuses a token that is new")
        return await self._renewed(refused)

    def values(self) -> dict[str, str]:
        """Return all tokens that this process has seen, by what they are called when redacted."""
        return self._value_by_key

    def _used(self, tokens: Tokens) -> str:
        for kind, value in (("access token", tokens.access), ("refresh token", tokens.refresh)):
            if value and value not in self._value_by_key.values():
                self._value_by_key[f"{kind} {len(self._value_by_key) + 1}"] = value
        return tokens.access

    def _tokens(self, kept: StoredLogin | None) -> Tokens:
        if kept is None or kept.tokens is None:
            raise not_logged_in(self._name)
        if kept.url != self._url:
            raise not_logged_in(self._name, "the login was for another URL")
        return kept.tokens

    async def _renewed(self, stale: str) -> str:
        """Renew, to the end even if the request is called off: the old token is used up then."""
        task = asyncio.ensure_future(self._renew(stale))
        self._renewing.add(task)
        task.add_done_callback(self._renewing.discard)
        return self._used(await asyncio.shield(task))

    async def finish(self) -> None:
        """Wait for what is under way: its answer has the only refresh token there is."""
        await asyncio.gather(*self._renewing, return_exceptions=True)

    async def _renew(self, stale: str) -> Tokens:
        async with self._store.lock():
            kept = self._store.read()
            tokens = self._tokens(kept)
            if kept is None or tokens.access != stale:
                return tokens  # another session was here
            if not tokens.refresh or kept.client is None:
                self._store.write(msgspec.structs.replace(kept, tokens=None))
                raise not_logged_in(self._name, "the login has ended, and cannot be renewed")
            renewed = await self._ask(kept, kept.client, tokens)
            self._store.write(msgspec.structs.replace(kept, tokens=renewed))
        self._renewed_at_s = time.monotonic()
        return renewed

    async def _ask(self, kept: StoredLogin, client: OAuthClient, tokens: Tokens) -> Tokens:
        try:
            return await token_endpoint.renew(self._web, kept, client, tokens)
        except TokenEndpointError as refused:
            if refused.code not in _OF_NO_USE:
                raise
            known = None if refused.code in UNKNOWN_CLIENT else client
            self._store.write(msgspec.structs.replace(kept, tokens=None, client=known))
            raise not_logged_in(self._name, "the login was revoked, or has ended") from refused
