"""Sealed OAuth store of a login: authorization server, client registration and tokens."""

import base64
import binascii

import msgspec

from mcpwrap.core.secrets import aead
from mcpwrap.core.secrets.aead import SealError
from mcpwrap.core.secrets.at_rest import unhex

FORMAT = 1
EARLY_S = 60.0  # a token that ends so soon is renewed before it is used


class OAuthClient(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Client registration at an authorization server. `method` is of RFC 7591 section 2."""

    client_id: str
    secret: str = ""
    method: str = "none"  # or client_secret_basic, client_secret_post
    redirect: str = ""  # what was registered; "" if it was not us who registered it
    expires_at: float = 0.0  # since 1970; 0 is never


class Tokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tokens of a login. `refresh` is "" where there is none."""

    access: str
    refresh: str = ""
    expires_at: float = 0.0  # since 1970; 0 is not known
    scopes: tuple[str, ...] = ()

    def is_fresh(self, now_s: float) -> bool:
        """Say whether the access token will do for the next request."""
        return not self.expires_at or now_s < self.expires_at - EARLY_S

    def is_over(self, now_s: float) -> bool:
        """Say whether the access token is of no use any more."""
        return bool(self.expires_at) and now_s >= self.expires_at


class StoredLogin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whole store. Tokens are for the server at `url` alone, whatever is configured later."""

    format: int = FORMAT
    url: str
    resource: str  # RFC 8707: what the tokens are for, in the server's own words
    issuer: str
    token_endpoint: str
    revocation_endpoint: str = ""
    client: OAuthClient | None = None
    tokens: Tokens | None = None


def put(kept: StoredLogin, name: str, key: str, nonce: bytes) -> str:
    """Return the text of a file with what is kept, sealed for the server `name`.

    Raises:
        SealError: that is no key.
    """
    text = msgspec.json.encode(kept)
    return aead.seal(text, _key(key), nonce=nonce, bound=_bound(name)).hex() + "\n"


def take(sealed: str, name: str, key: str) -> StoredLogin:
    """Return what is kept.

    Raises:
        SealError: it is not as it was sealed, or by another version of mcpwrap.
    """
    text = aead.unseal(unhex(sealed.removesuffix("\n")), _key(key), bound=_bound(name))
    try:
        return msgspec.json.decode(text, type=StoredLogin)
    except msgspec.MsgspecError:
        raise SealError("another version of mcpwrap wrote it") from None


def _bound(name: str) -> tuple[str, ...]:
    return ("oauth tokens", name)


def _key(text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != aead.KEY_BYTES:
        raise SealError("its key is none")
    return key
