"""Remote program's side of `mcpwrap login` and `mcpwrap logout`: OAuth, over the login pipe."""

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

PATIENCE_S = 900.0  # a person looks for a password, and a second factor
T = TypeVar("T", bound=LoginMessage)


class LoginPeer:
    """Login pipe to the person who typed `mcpwrap login`, with a timeout."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO, timeout_s: float = PATIENCE_S) -> None:
        self._reader = reader
        self._writer = writer  # it has no buffer
        self._timeout_s = timeout_s

    def send(self, message: LoginMessage) -> None:
        """Send a message, unless the other end has closed the pipe."""
        with suppress(BrokenPipeError):
            self._writer.write(login_pipe.encode(message))

    def receive(self, kind: type[T]) -> T:
        """Wait for a message. This process does nothing else meanwhile.

        Raises:
            OAuthError: the message did not come in time.
            LoginProtocolError: another message came.
        """
        if not select.select([self._reader], [], [], self._timeout_s)[0]:
            raise OAuthError(
                f"no answer came within {self._timeout_s / 60:.0f} min [E-LOGIN-TIMEOUT]"
            )
        return login_pipe.expect(self._reader.readline(login_pipe.MAX_LINE_BYTES), kind)


async def run(
    verb: str, given: OAuthSessionFile, url: str, web: JsonClient, person: LoginPeer
) -> None:
    """Log in to the server at `url`, or out, and send the person the result."""
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
    """Let a person log in, and store the tokens.

    Raises:
        OAuthError, LoginProtocolError: the login failed; an earlier login stays stored.
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
    """Remove the tokens, and have them revoked if possible.

    Raises:
        OAuthError: they could not be removed.
    """
    store = Store(given)
    async with store.lock():
        stored = store.read_or_nothing()
        store.remove()
    revoked = False
    if stored:
        try:
            revoked = await token_endpoint.revoke(web, stored)
        except OAuthError:
            revoked = False
    return LoginDone(revoked=revoked)


async def _forget_client(store: Store) -> None:
    """Remove the client, so that the next login registers one. Earlier tokens stay."""
    async with store.lock():
        if stored := store.read_or_nothing():
            store.write(msgspec.structs.replace(stored, client=None))


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
