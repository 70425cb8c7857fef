"""OAuth client: authorization URL, code exchange (PKCE), refresh, revocation; by a library."""

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

_TOKEN = re.compile(r"[!-~]{1,65536}")  # what a header can hold
UNKNOWN_CLIENT = frozenset({"invalid_client", "unauthorized_client"})  # section 5.2
_VERIFIER_CHARS = 64  # RFC 7636 section 4.1: 43 to 128


class TokenEndpointError(OAuthError):
    """Refusal of a token by an authorization server; `code` is of RFC 6749 section 5.2."""

    def __init__(self, why: str, code: str) -> None:
        super().__init__(why)
        self.code = code


class _Granted(msgspec.Struct, frozen=True):
    """Token response of RFC 6749 section 5.1, as the library returns it."""

    access_token: str
    token_type: str
    expires_in: int | float | None = None
    refresh_token: str | None = None
    scope: list[str] | None = None


class AuthorizationRequest:
    """One login. It holds the PKCE verifier, which goes to the authorization server alone."""

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
        """Return what a person is to open in a browser."""
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
        """Exchange the code of an answer. Another answer needs another login.

        Raises:
            OAuthError: it is not an answer to `url`, or there are no tokens for it.
        """
        issuer = self._found.issuer
        state, self._state = self._state, ""
        if not state:
            raise OAuthError("there was an answer already")
        named = bool(issuer.authorization_response_iss_parameter_supported)
        authorization_response.expect_own(query, issuer=issuer.issuer, names_itself=named)
        try:
            # The library takes no http, not even of the loopback; the rest of the URL is not used.
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


async def renew(web: JsonClient, kept: StoredLogin, client: OAuthClient, tokens: Tokens) -> Tokens:
    """Return tokens for a refresh token, which is used up by that.

    Raises:
        TokenEndpointError: it is of no use any more, if the code is `invalid_grant`.
        OAuthError: there was no answer.
    """
    library = WebApplicationClient(client.client_id)
    body = library.prepare_refresh_body(
        refresh_token=tokens.refresh, client_id=client.client_id, resource=kept.resource
    )
    reply = await _post(web, kept.token_endpoint, body, client)
    return _tokens(library, reply, kept.token_endpoint, tokens)


async def revoke(web: JsonClient, kept: StoredLogin) -> bool:
    """Have the tokens revoked, and say whether they are. Source: RFC 7009.

    Raises:
        OAuthError: there was no answer.
    """
    if not (kept.tokens and kept.client and kept.revocation_endpoint):
        return False
    kind = "refresh_token" if kept.tokens.refresh else "access_token"
    _, _, body = WebApplicationClient(kept.client.client_id).prepare_token_revocation_request(
        kept.revocation_endpoint,
        kept.tokens.refresh or kept.tokens.access,
        token_type_hint=kind,
        client_id=kept.client.client_id,
    )
    return (await _post(web, kept.revocation_endpoint, body, kept.client)).is_good


async def _post(web: JsonClient, url: str, body: str, client: OAuthClient) -> Reply:
    """Send a form as the client that we are. Source: RFC 6749 section 2.3.1."""
    if client.method == "client_secret_basic":
        pair = f"{quote_plus(client.client_id)}:{quote_plus(client.secret)}"
        return await web.post_form(url, body, f"Basic {base64.b64encode(pair.encode()).decode()}")
    if client.method == "client_secret_post":
        body += f"&client_secret={quote_plus(client.secret)}"
    return await web.post_form(url, body)


def _tokens(library: WebApplicationClient, reply: Reply, url: str, before: Tokens) -> Tokens:
    """Return what was granted; what the answer leaves out is as it was asked for, or before."""
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
            f"{host(url)} answers with no token that can be used (HTTP {reply.status})"
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
        return TokenEndpointError("the answer is not that of this login", code)
    return TokenEndpointError(
        f"{host(url)} gives no token: {authorization_response.refusal(code)}", code
    )
