"""Validation of an OAuth authorization response, before any of it is used."""

import re
from urllib.parse import parse_qsl

from mcpwrap.core.oauth.errors import OAuthError

MAX_CHARS = 16_384
_PLAIN = re.compile(r"[!-~]+")
_ERROR_CODE = re.compile(r"[a-z_]{1,64}")
_WORDS_BY_ERROR = {
    "access_denied": "access was denied in the browser",
    "invalid_scope": "it does not give out the scopes that were asked for",
    "unauthorized_client": "it does not let mcpwrap log in this way",
    "server_error": "it has failed",
    "temporarily_unavailable": "it has no time just now",
}


def expect_own(query: str, *, issuer: str, names_itself: bool) -> None:
    """Refuse an answer that is cut, doubled or another authorization server's.

    `names_itself` is what it has promised: to say `iss` in each answer (RFC 9207). What it says
    counts in any case. State and code are for the library that asked.

    Raises:
        OAuthError: with what is wrong; nothing of the answer may be used.
    """
    if len(query) > MAX_CHARS or not _PLAIN.fullmatch(query):
        raise OAuthError("what the browser brought back is no answer of an authorization server")
    pairs = parse_qsl(query, keep_blank_values=True)
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):  # RFC 6749 section 3.1
        raise OAuthError("the answer says something twice")
    issuers = [value for name, value in pairs if name == "iss"]
    if issuers != [issuer] and (issuers or names_itself):
        raise OAuthError("the answer is not from the authorization server that was asked")


def refusal(error: str) -> str:
    """Return the meaning of an OAuth error code; a malformed code is not quoted."""
    words = _WORDS_BY_ERROR.get(error)
    if words:
        return words
    return f"it says {error}" if _ERROR_CODE.fullmatch(error) else "it refuses"
