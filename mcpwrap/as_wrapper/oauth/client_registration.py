"""OAuth client identity: configured, by a metadata document, or registered.

Source: MCP, authorization, client registration.
"""

import time

import msgspec

from mcpwrap.as_wrapper.oauth.json_client import JsonClient
from mcpwrap.core.oauth.errors import OAuthError
from mcpwrap.core.oauth.metadata import Issuer, host
from mcpwrap.core.oauth.token_store import OAuthClient, StoredLogin
from mcpwrap.core.wire.oauth_session_file import OAuthSessionFile

_BASIC = "client_secret_basic"  # the default: RFC 7591 section 2
_METHODS = ("none", _BASIC, "client_secret_post")


class _Registered(msgspec.Struct, frozen=True):
    """Registration response of RFC 7591 section 3.2.1, as far as it is used here."""

    client_id: str
    client_secret: str | None = None
    client_secret_expires_at: float | None = None
    token_endpoint_auth_method: str | None = None


async def client_for(
    web: JsonClient,
    given: OAuthSessionFile,
    issuer: Issuer,
    redirect: str,
    before: StoredLogin | None,
) -> OAuthClient:
    """Return the configured client, else one with a metadata document, else a registered one.

    Raises:
        OAuthError: this authorization server accepts none of these.
    """
    if given.client_id:
        return OAuthClient(client_id=given.client_id)
    if given.client_id_metadata and issuer.client_id_metadata_document_supported:
        return OAuthClient(client_id=given.client_id_metadata)
    known = before.client if before and before.issuer == issuer.issuer else None
    if known and _is_usable(known, redirect):
        return known
    if issuer.registration_endpoint is None:
        raise OAuthError(
            f"{host(issuer.issuer)} has no automatic client registration: register a client there "
            f'with the redirect URI {redirect}, and write `oauth = {{ client_id = "…" }}` '
            "[E-OAUTH-REGISTRATION]"
        )
    return await _register(web, issuer.registration_endpoint, redirect)


def _is_usable(client: OAuthClient, redirect: str) -> bool:
    """Return whether a registered client is usable: not all servers let ports differ (RFC 8252)."""
    has_ended = bool(client.expires_at) and time.time() >= client.expires_at
    return client.redirect == redirect and not has_ended


async def _register(web: JsonClient, endpoint: str, redirect: str) -> OAuthClient:
    wanted = {
        "client_name": "mcpwrap",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",  # OpenID Connect Registration: "web" refuses loopback
    }
    reply = await web.post_json(endpoint, msgspec.json.encode(wanted))
    if not reply.is_good:
        raise OAuthError(
            f"{host(endpoint)} refused to register mcpwrap (HTTP {reply.status}) "
            "[E-OAUTH-REGISTRATION]"
        )
    try:
        found = msgspec.json.decode(reply.text, type=_Registered)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        found = _Registered(client_id="")
    method = found.token_endpoint_auth_method or (_BASIC if found.client_secret else "none")
    is_complete = method == "none" or found.client_secret
    if not found.client_id or method not in _METHODS or not is_complete:
        raise OAuthError(
            f"{host(endpoint)} registered mcpwrap with unusable data [E-OAUTH-REGISTRATION]"
        )
    return OAuthClient(
        client_id=found.client_id,
        secret=found.client_secret or "",
        method=method,
        redirect=redirect,
        expires_at=found.client_secret_expires_at or 0.0,
    )
