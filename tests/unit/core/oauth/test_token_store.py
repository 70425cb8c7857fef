"""Stored login: it is unsealed only for its server, with its key, and unchanged."""

import base64

import msgspec
import pytest

from mcpwrap.core.oauth import token_store
from mcpwrap.core.oauth.token_store import EARLY_S, OAuthClient, StoredLogin, Tokens
from mcpwrap.core.secrets import aead
from mcpwrap.core.secrets.aead import SealError
from mcpwrap.core.wire.oauth_session_file import OAuthSessionFile, read_oauth_session_file

KEY = base64.b64encode(b"k" * 32).decode()
NONCE = b"n" * aead.NONCE_BYTES
KEPT = StoredLogin(
    url="https://a.example/mcp",
    resource="https://a.example",
    issuer="https://as.example",
    token_endpoint="https://as.example/token",
    client=OAuthClient(client_id="me"),
    tokens=Tokens(access="t", refresh="r", expires_at=1000.0, scopes=("a",)),
)


def test_a_stored_login_is_read_as_it_was_written() -> None:
    assert token_store.take(token_store.put(KEPT, "a", KEY, NONCE), "a", KEY) == KEPT


def test_not_one_bit_may_differ() -> None:
    text = token_store.put(KEPT, "a", KEY, NONCE).encode()
    for at in range(len(text)):
        for bit in range(7):
            changed = text[:at] + bytes([text[at] ^ 1 << bit]) + text[at + 1 :]
            with pytest.raises(SealError):
                token_store.take(changed.decode(), "a", KEY)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("b", KEY),
        ("a", base64.b64encode(b"x" * 32).decode()),
        ("a", base64.b64encode(b"k" * 31).decode()),
        ("a", "%"),
        ("a", "\u00e9"),
    ],
)
def test_another_server_or_key_does_not_open_it(name: str, key: str) -> None:
    with pytest.raises(SealError):
        token_store.take(token_store.put(KEPT, "a", KEY, NONCE), name, key)


def test_the_file_of_another_version_is_reported() -> None:
    sealed = aead.seal(b'{"format":2}', b"k" * 32, nonce=NONCE, bound=("oauth tokens", "a")).hex()
    with pytest.raises(SealError, match="another version"):
        token_store.take(sealed, "a", KEY)


@pytest.mark.parametrize(
    ("expires_at", "now_s", "is_fresh", "is_over"),
    [
        (0.0, 5000.0, True, False),  # the expiry is not known
        (1000.0, 1000.0 - EARLY_S - 1, True, False),
        (1000.0, 1000.0 - EARLY_S, False, False),
        (1000.0, 1000.0, False, True),
    ],
)
def test_when_a_token_expires(
    *, expires_at: float, now_s: float, is_fresh: bool, is_over: bool
) -> None:
    tokens = Tokens(access="t", expires_at=expires_at)
    assert (tokens.is_fresh(now_s), tokens.is_over(now_s)) == (is_fresh, is_over)


def test_the_wrappers_file_is_read_as_it_was_written() -> None:
    given = OAuthSessionFile(name="a", key=KEY, store="/x", scopes=("a",), client_id="me")
    assert read_oauth_session_file(msgspec.json.encode(given)) == given
