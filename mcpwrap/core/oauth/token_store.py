"""Sealed OAuth store of a login: authorization server, client registration and tokens."""

import base64
import binascii

import msgspec

from mcpwrap.core.secrets import aead
from mcpwrap.core.secrets.aead import SealError
from mcpwrap.core.secrets.at_rest import unhex

FORMAT = 1
EARLY_S = 60.0  # a token that expires so soon is refreshed before it is used


class OAuthClient(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Client registration at an authorization server. `method` is of RFC 7591 section 2."""

    client_id: str
    secret: str = ""
    method: str = "none"  # or client_secret_basic, client_secret_post
    redirect: str = ""  # the registered redirect URL; "" if mcpwrap did not register the client
    expires_at: float = 0.0  # seconds since 1970; 0 is never


class Tokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tokens of a login. `refresh` is "" without a refresh token."""

    access: str
    refresh: str = ""
    expires_at: float = 0.0  # seconds since 1970; 0 is not known
    scopes: tuple[str, ...] = ()

    def is_fresh(self, now_s: float) -> bool:
        """Return whether the access token can be used for the next request."""
        return not self.expires_at or now_s < self.expires_at - EARLY_S

    def is_over(self, now_s: float) -> bool:
        """Return whether the access token has expired."""
        return bool(self.expires_at) and now_s >= self.expires_at


class StoredLogin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whole store. Tokens are for the server at `url` only, even if another is configured later."""

    format: int = FORMAT
    url: str
    resource: str  # RFC 8707: the resource of the tokens, as the server's metadata names it
    issuer: str
    token_endpoint: str
    revocation_endpoint: str = ""
    client: OAuthClient | None = None
    tokens: Tokens | None = None


def put(login: StoredLogin, name: str, key: str, nonce: bytes) -> str:
    """Return the text of the store file, sealed for the server `name`.

    Raises:
        SealError: the key is malformed.
    """
    text = msgspec.json.encode(login)
    return aead.seal(text, _key(key), nonce=nonce, bound=_bound(name)).hex() + "\n"


def take(sealed: str, name: str, key: str) -> StoredLogin:
    """Unseal the store of the server `name`.

    Raises:
        SealError: the file is not as it was sealed, another version of mcpwrap wrote it, or the key
            is malformed.
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
        raise SealError("its key is malformed")
    return key
