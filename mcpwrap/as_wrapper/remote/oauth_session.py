"""OAuth of a session: its bearer token, or a session that is itself a login or logout."""

import asyncio
import os
import ssl
from pathlib import Path

import msgspec
from aiohttp import ClientSession

from mcpwrap.as_wrapper.oauth import login
from mcpwrap.as_wrapper.oauth.access_token import AccessToken
from mcpwrap.as_wrapper.oauth.json_client import JsonClient
from mcpwrap.as_wrapper.oauth.login import LoginPeer
from mcpwrap.as_wrapper.remote.bearer_token import Bearer
from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.core.wire.oauth_session_file import OAuthSessionFile, read_oauth_session_file
from mcpwrap.session.remote import http_client
from mcpwrap.session.remote.credentials import Credentials
from mcpwrap.session.remote.http_client import UpstreamTarget


def read_session_file(path: str) -> OAuthSessionFile:
    """Return the OAuth settings that the wrapper wrote for this session.

    Raises:
        RemoteError: they cannot be read.
    """
    try:
        return read_oauth_session_file(Path(path).read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise RemoteError(
            "The OAuth settings of this session cannot be read [E-REMOTE-CREDENTIAL]"
        ) from error


def bearer(
    what: OAuthSessionFile, here: UpstreamTarget, credentials: Credentials, http: ClientSession
) -> Bearer:
    """Return the bearer token, which is added to each request."""
    return Bearer(AccessToken(what, str(here.url), _web(http)), credentials)


def run(
    verb: str, what: OAuthSessionFile, here: UpstreamTarget, verify: ssl.SSLContext | None
) -> str:
    """Log in or out over the login pipe, descriptors 0 and 1, which also gets the errors."""

    async def serve(person: LoginPeer) -> None:
        async with http_client.session(verify) as http:
            await login.run(verb, what, str(here.url), _web(http), person)

    with os.fdopen(0, "rb", buffering=0) as reader, os.fdopen(1, "wb", buffering=0) as writer:
        asyncio.run(serve(LoginPeer(reader, writer)))
    return ""


def _web(http: ClientSession) -> JsonClient:
    return JsonClient(http, lambda url: http_client.upstream_target(url).proxy)
