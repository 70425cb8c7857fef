"""Validation of an OAuth authorization response, before any of it is used."""

import re
from urllib.parse import parse_qsl

from mcpwrap.core.oauth.errors import OAuthError

MAX_CHARS = 16_384
_PLAIN = re.compile(r"[!-~]+")
_ERROR_CODE = re.compile(r"[a-z_]{1,64}")
_WORDS_BY_ERROR = {
    "access_denied": "access was denied in the browser",
    "invalid_scope": "it does not grant the requested scopes",
    "unauthorized_client": "it does not allow mcpwrap to log in this way",
    "server_error": "it has failed",
    "temporarily_unavailable": "it is temporarily unavailable",
}


def expect_own(query: str, *, issuer: str, names_itself: bool) -> None:
    """Refuse a response that is malformed, has a parameter twice, or is from another issuer.

    `names_itself` is whether the authorization server promises `iss` in each response (RFC 9207).
    An `iss` that is there is checked in any case. State and code are checked by the library that
    sent the request.

    Raises:
        OAuthError: with the reason; no part of the response may be used.
    """
    if len(query) > MAX_CHARS or not _PLAIN.fullmatch(query):
        raise OAuthError("the browser did not return a response of an authorization server")
    pairs = parse_qsl(query, keep_blank_values=True)
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):  # RFC 6749 section 3.1
        raise OAuthError("the response has a parameter more than once")
    issuers = [value for name, value in pairs if name == "iss"]
    if issuers != [issuer] and (issuers or names_itself):
        raise OAuthError("the response is not from the authorization server of this login")


def refusal(error: str) -> str:
    """Return the meaning of an OAuth error code; a malformed code is not quoted."""
    words = _WORDS_BY_ERROR.get(error)
    if words:
        return words
    return f"its error is {error}" if _ERROR_CODE.fullmatch(error) else "it gave no valid reason"
