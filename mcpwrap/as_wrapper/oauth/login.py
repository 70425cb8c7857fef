"""Helper's side of `mcpwrap login` and `mcpwrap logout`: the OAuth flow, over two pipes."""

import select
import time
from contextlib import suppress
from typing import BinaryIO, TypeVar

import msgspec

from mcpwrap.as_wrapper.oauth import token_endpoint
from mcpwrap.as_wrapper.oauth.client_registration import client_for
from mcpwrap.as_wrapper.oauth.discovery import DiscoveryResult, discover
from mcpwrap.as_wrapper.oauth.json_client import JsonClient
from mcpwrap.as_wrapper.oauth.token_endpoint import (
    UNKNOWN_CLIENT,
    AuthorizationRequest,
    TokenEndpointError,
)
from mcpwrap.as_wrapper.oauth.token_file import Store
from mcpwrap.core.oauth.errors import OAuthError
from mcpwrap.core.oauth.token_store import OAuthClient, StoredLogin, Tokens
from mcpwrap.core.wire import login_pipe
from mcpwrap.core.wire.login_pipe import (
    AuthorizationPage,
    AuthorizationResponse,
    LoginDone,
    LoginFailed,
    LoginMessage,
    LoginProtocolError,
    LoginStart,
)
from mcpwrap.core.wire.oauth_session_file import OAuthSessionFile

PATIENCE_S = 900.0  # a person finds a password, and a second factor
T = TypeVar("T", bound=LoginMessage)


class LoginPeer:
    """Pipes to the person who typed `mcpwrap login`, with a timeout."""

    def __init__(self, said: BinaryIO, told: BinaryIO, patience_s: float = PATIENCE_S) -> None:
        self._said = said
        self._told = told
        self._patience_s = patience_s

    def send(self, word: LoginMessage) -> None:
        """Say something, if they are still there. `told` has no buffer."""
        with suppress(BrokenPipeError):
            self._told.write(login_pipe.encode(word))

    def receive(self, kind: type[T]) -> T:
        """Wait for what is said. Nothing else goes on in this process meanwhile.

        Raises:
            OAuthError: nothing was said in time.
            LoginProtocolError: something else was.
        """
        if not select.select([self._said], [], [], self._patience_s)[0]:
            raise OAuthError(f"no answer came within {self._patience_s / 60:.0f} min")
        return login_pipe.expect(self._said.readline(login_pipe.MAX_LINE_BYTES), kind)


async def run(
    verb: str, given: OAuthSessionFile, url: str, web: JsonClient, person: LoginPeer
) -> None:
    """Log in to the server at `url`, or out, and tell the person what came of it."""
    try:
        if verb == login_pipe.LOGOUT:
            done = await log_out(given, web)
        else:
            done = await log_in(given, url, web, person)
    except (OAuthError, LoginProtocolError) as error:
        person.send(LoginFailed(failed=str(error)))
    else:
        person.send(done)


async def log_in(
    given: OAuthSessionFile, url: str, web: JsonClient, person: LoginPeer
) -> LoginDone:
    """Let a person log in, and keep the tokens.

    Raises:
        OAuthError, LoginProtocolError: there are none; what was kept before is kept still.
    """
    redirect = person.receive(LoginStart).redirect()
    store = Store(given)
    found = await discover(web, url)
    client = await client_for(web, given, found.issuer, redirect, store.read_or_nothing())
    scopes = found.to_ask_for(given.scopes)
    login = AuthorizationRequest(found, client, redirect, scopes)
    person.send(AuthorizationPage(visit=login.url(), redirect=redirect))
    try:
        tokens = await login.redeem(web, person.receive(AuthorizationResponse).answer)
    except TokenEndpointError as refused:
        if refused.code in UNKNOWN_CLIENT:
            await _forget_client(store)
        raise
    async with store.lock():
        store.write(_stored_login(url, found, client, tokens))
    return LoginDone(
        scopes=tokens.scopes,
        expires_in=round(tokens.expires_at - time.time()) if tokens.expires_at else None,
        renewable=bool(tokens.refresh),
    )


async def log_out(given: OAuthSessionFile, web: JsonClient) -> LoginDone:
    """Forget the tokens, and have them revoked if that can be done.

    Raises:
        OAuthError: they could not be forgotten.
    """
    store = Store(given)
    async with store.lock():
        kept = store.read_or_nothing()
        store.remove()
    revoked = False
    if kept:
        try:
            revoked = await token_endpoint.revoke(web, kept)
        except OAuthError:
            revoked = False
    return LoginDone(revoked=revoked)


async def _forget_client(store: Store) -> None:
    """Register anew the next time; tokens of before are kept."""
    async with store.lock():
        if kept := store.read_or_nothing():
            store.write(msgspec.structs.replace(kept, client=None))


def _stored_login(
    url: str, found: DiscoveryResult, client: OAuthClient, tokens: Tokens
) -> StoredLogin:
    issuer = found.issuer
    return StoredLogin(
        url=url,
        resource=found.resource,
        issuer=issuer.issuer,
        token_endpoint=issuer.token_endpoint,
        revocation_endpoint=issuer.revocation_endpoint or "",
        client=client,
        tokens=tokens,
    )
