"""Authenticated encryption (AEAD) of a value, bound to the context that it is sealed for.

Only the holder of the key opens it, and only in the same context. XChaCha20-Poly1305 of libsodium:
its nonce of 24 bytes is long enough to be random, and the context of a value (server, key, version,
…) is authenticated with it. Source: draft-irtf-cfrg-xchacha-03.
"""

import hashlib

from nacl import bindings
from nacl.exceptions import CryptoError

KEY_BYTES = bindings.crypto_aead_xchacha20poly1305_ietf_KEYBYTES
NONCE_BYTES = bindings.crypto_aead_xchacha20poly1305_ietf_NPUBBYTES


class SealError(ValueError):
    """Failure to open a sealed value. The text has the reason, and nothing of the content."""


def seal(value: bytes, key: bytes, *, nonce: bytes, bound: tuple[str, ...]) -> bytes:
    """Return nonce and ciphertext. `nonce` is new random bytes of the system for each call."""
    sealed = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(value, _aad(bound), nonce, key)
    return nonce + sealed


def unseal(sealed: bytes, key: bytes, *, bound: tuple[str, ...]) -> bytes:
    """Return the value.

    Raises:
        SealError: another key, another `bound`, or any bit is not as it was sealed.
    """
    nonce, rest = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
    if len(nonce) < NONCE_BYTES:
        raise SealError("it is cut off")
    try:
        return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(rest, _aad(bound), nonce, key)
    except (CryptoError, ValueError):
        raise SealError("it was changed, or sealed for something else") from None


def key_id(key: bytes) -> str:
    """Return a name for a key that reveals nothing about it: 16 hexadecimal digits."""
    return hashlib.blake2b(key, digest_size=8, person=b"mcpwrap key id").hexdigest()


def _aad(bound: tuple[str, ...]) -> bytes:
    """Return the bound texts as bytes, different for each list: no text has a NUL."""
    return "\0".join(("mcpwrap 1", *bound)).encode()
