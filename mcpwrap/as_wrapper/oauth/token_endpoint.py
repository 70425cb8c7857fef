"""OAuth token endpoint: authorization URL, code exchange (PKCE), refresh, revocation."""

import base64
import re
import time
from urllib.parse import quote_plus

import msgspec
from oauthlib.oauth2 import MissingTokenError, OAuth2Error, WebApplicationClient

from mcpwrap.as_wrapper.oauth.discovery import DiscoveryResult
from mcpwrap.as_wrapper.oauth.json_client import JsonClient, Reply
from mcpwrap.core.oauth import authorization_response
from mcpwrap.core.oauth.errors import OAuthError
from mcpwrap.core.oauth.metadata import host
from mcpwrap.core.oauth.token_store import OAuthClient, StoredLogin, Tokens

_TOKEN = re.compile(r"[!-~]{1,65536}")  # valid in a header
UNKNOWN_CLIENT = frozenset({"invalid_client", "unauthorized_client"})  # RFC 6749 section 5.2
_VERIFIER_CHARS = 64  # RFC 7636 section 4.1: 43 to 128


class TokenEndpointError(OAuthError):
    """Refusal of a token by an authorization server. `code` is an error of RFC 6749 section 5.2."""

    def __init__(self, why: str, code: str) -> None:
        super().__init__(why)
        self.code = code


class _Granted(msgspec.Struct, frozen=True):
    """Token response of RFC 6749 section 5.1, as oauthlib returns it."""

    access_token: str
    token_type: str
    expires_in: int | float | None = None
    refresh_token: str | None = None
    scope: list[str] | None = None


class AuthorizationRequest:
    """One login. It has the PKCE verifier, which only the authorization server is sent."""

    def __init__(
        self, found: DiscoveryResult, client: OAuthClient, redirect: str, scopes: tuple[str, ...]
    ) -> None:
        self._found = found
        self._client = client
        self._redirect = redirect
        self._scopes = scopes
        self._library = WebApplicationClient(client.client_id)
        self._verifier = self._library.create_code_verifier(_VERIFIER_CHARS)
        self._state = WebApplicationClient("").create_code_verifier(_VERIFIER_CHARS)

    def url(self) -> str:
        """Return the URL that a person opens in a browser."""
        return str(
            self._library.prepare_request_uri(
                self._found.issuer.authorization_endpoint,
                redirect_uri=self._redirect,
                scope=" ".join(self._scopes) or None,
                state=self._state,
                code_challenge=self._library.create_code_challenge(self._verifier, "S256"),
                code_challenge_method="S256",
                resource=self._found.resource,
                prompt=self._found.prompt(self._scopes),
            )
        )

    async def redeem(self, web: JsonClient, query: str) -> Tokens:
        """Exchange the code of an authorization response. A second response needs a new login.

        Raises:
            OAuthError: the response is not to `url`, or the server grants no tokens for it.
        """
        issuer = self._found.issuer
        state, self._state = self._state, ""
        if not state:
            raise OAuthError("this login has had its response already [E-OAUTH-WRONG-RESPONSE]")
        named = bool(issuer.authorization_response_iss_parameter_supported)
        authorization_response.expect_own(query, issuer=issuer.issuer, names_itself=named)
        try:
            # oauthlib rejects http, even on the loopback; it does not use the rest of the URL.
            answer = self._library.parse_request_uri_response(f"https://here/?{query}", state)
        except OAuth2Error as error:
            raise _refused(error, issuer.issuer) from None
        body = self._library.prepare_request_body(
            code=answer["code"],
            redirect_uri=self._redirect,
            code_verifier=self._verifier,
            resource=self._found.resource,
        )
        reply = await _post(web, issuer.token_endpoint, body, self._client)
        return _tokens(
            self._library, reply, issuer.token_endpoint, Tokens(access="", scopes=self._scopes)
        )


async def renew(
    web: JsonClient, stored: StoredLogin, client: OAuthClient, tokens: Tokens
) -> Tokens:
    """Return new tokens for a refresh token, which is used up by the request.

    Raises:
        TokenEndpointError: refused; with the code `invalid_grant` the token is no longer valid.
        OAuthError: there was no usable response.
    """
    library = WebApplicationClient(client.client_id)
    body = library.prepare_refresh_body(
        refresh_token=tokens.refresh, client_id=client.client_id, resource=stored.resource
    )
    reply = await _post(web, stored.token_endpoint, body, client)
    return _tokens(library, reply, stored.token_endpoint, tokens)


async def revoke(web: JsonClient, stored: StoredLogin) -> bool:
    """Request the revocation of the tokens; return whether it succeeded. Source: RFC 7009.

    Raises:
        OAuthError: there was no usable response.
    """
    if not (stored.tokens and stored.client and stored.revocation_endpoint):
        return False
    kind = "refresh_token" if stored.tokens.refresh else "access_token"
    _, _, body = WebApplicationClient(stored.client.client_id).prepare_token_revocation_request(
        stored.revocation_endpoint,
        stored.tokens.refresh or stored.tokens.access,
        token_type_hint=kind,
        client_id=stored.client.client_id,
    )
    return (await _post(web, stored.revocation_endpoint, body, stored.client)).is_good


async def _post(web: JsonClient, url: str, body: str, client: OAuthClient) -> Reply:
    """Send a form with the client authentication. Source: RFC 6749 section 2.3.1."""
    if client.method == "client_secret_basic":
        pair = f"{quote_plus(client.client_id)}:{quote_plus(client.secret)}"
        return await web.post_form(url, body, f"Basic {base64.b64encode(pair.encode()).decode()}")
    if client.method == "client_secret_post":
        body += f"&client_secret={quote_plus(client.secret)}"
    return await web.post_form(url, body)


def _tokens(library: WebApplicationClient, reply: Reply, url: str, before: Tokens) -> Tokens:
    """Return the granted tokens; values that the response omits are as requested, or as before."""
    try:
        found = library.parse_request_body_response(reply.text.decode())
        granted = msgspec.convert(dict(found), _Granted)
    except (MissingTokenError, ValueError, TypeError, AttributeError, KeyError):
        granted = _Granted("", "")
    except OAuth2Error as error:
        raise _refused(error, url) from None
    refresh = granted.refresh_token or before.refresh
    is_bearer = granted.token_type.lower() == "bearer"
    is_sound = _TOKEN.fullmatch(granted.access_token) and (not refresh or _TOKEN.fullmatch(refresh))
    if not reply.is_good or not is_bearer or not is_sound:
        raise OAuthError(
            f"{host(url)} returned no usable token (HTTP {reply.status}) [E-OAUTH-RESPONSE]"
        )
    return Tokens(
        access=granted.access_token,
        refresh=refresh,
        expires_at=time.time() + granted.expires_in if granted.expires_in else 0.0,
        scopes=before.scopes if granted.scope is None else tuple(granted.scope),
    )


def _refused(error: OAuth2Error, url: str) -> TokenEndpointError:
    code = str(error.error or "")
    if code in {"mismatching_state", "missing_code"}:
        return TokenEndpointError(
            "the response does not belong to this login [E-OAUTH-WRONG-RESPONSE]", code
        )
    return TokenEndpointError(
        f"{host(url)} refused a token: {authorization_response.refusal(code)} "
        "[E-OAUTH-TOKEN-REFUSED]",
        code,
    )
