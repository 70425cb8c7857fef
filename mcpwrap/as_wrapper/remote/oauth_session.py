"""OAuth of a session: its bearer token, or the session that is itself a login or logout."""

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
from mcpwrap.as_wrapper.remote import http_client
from mcpwrap.as_wrapper.remote.bearer_token import Bearer
from mcpwrap.as_wrapper.remote.credentials import Credentials
from mcpwrap.as_wrapper.remote.http_client import UpstreamTarget
from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.core.wire.oauth_session_file import OAuthSessionFile, read_oauth_session_file


def read_session_file(path: str) -> OAuthSessionFile:
    """Return what the wrapper gives to this session.

    Raises:
        RemoteError: it cannot be read.
    """
    try:
        return read_oauth_session_file(Path(path).read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise RemoteError("What the wrapper gives for the login cannot be read") from error


def bearer(
    what: OAuthSessionFile, here: UpstreamTarget, credentials: Credentials, http: ClientSession
) -> Bearer:
    """Return what adds the token to each request."""
    return Bearer(AccessToken(what, str(here.url), _web(http)), credentials)


def run(
    verb: str, what: OAuthSessionFile, here: UpstreamTarget, verify: ssl.SSLContext | None
) -> str:
    """Log in or out with whoever is at descriptors 0 and 1; what goes wrong, they are told."""

    async def talk(person: LoginPeer) -> None:
        async with http_client.session(verify) as http:
            await login.run(verb, what, str(here.url), _web(http), person)

    with os.fdopen(0, "rb", buffering=0) as said, os.fdopen(1, "wb", buffering=0) as told:
        asyncio.run(talk(LoginPeer(said, told)))
    return ""


def _web(http: ClientSession) -> JsonClient:
    return JsonClient(http, lambda url: http_client.upstream_target(url).proxy)
