"""Secrets at rest: one sealed file each, and the list of the versions that were set.

Only root can read `/var/lib/mcpwrap/sealed/NAME/KEY.sealed`. Every account can read
`/var/lib/mcpwrap/secrets.json`: it has names and versions, and no value.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from mcpwrap.core.secrets import aead
from mcpwrap.core.secrets.aead import SealError
from mcpwrap.core.wire.secret_index import SecretVersion

FORMAT = 1
# One environment variable may have 128 KiB (execve(2)); a pipe holds 64 KiB.
MAX_SECRET_BYTES = 32 * 1024


class SealedSecretFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One secret at rest. `sealed_with` names the store key; `ciphertext` is hexadecimal."""

    format: int = FORMAT
    name: str
    key: str
    version: int
    sealed_with: str
    ciphertext: str


@dataclass(frozen=True, slots=True)
class Label:
    """Identity of a secret's value: its server, key and version."""

    name: str
    key: str
    version: int


def put(value: str, label: Label, store_key: bytes, nonce: bytes) -> SealedSecretFile:
    """Seal one secret for the disk."""
    sealed_with = aead.key_id(store_key)
    bound = _bound(label, sealed_with)
    return SealedSecretFile(
        name=label.name,
        key=label.key,
        version=label.version,
        sealed_with=sealed_with,
        ciphertext=aead.seal(value.encode(), store_key, nonce=nonce, bound=bound).hex(),
    )


def take(stored: SealedSecretFile, key_by_id: Mapping[str, bytes]) -> str:
    """Unseal the value of a secret.

    Raises:
        SealError: the store does not have the key, or the file is not as it was written.
    """
    store_key = key_by_id.get(stored.sealed_with)
    if store_key is None:
        raise SealError("sealed with another store key than this machine's")
    bound = _bound(Label(stored.name, stored.key, stored.version), stored.sealed_with)
    return aead.unseal(unhex(stored.ciphertext), store_key, bound=bound).decode()


def last_set(setting: SecretVersion | None) -> int:
    """Return the version that was set last.

    Raises:
        SealError: the secret was never set, or it was removed.
    """
    if setting is None or not setting.is_set:
        raise SealError("it is not set")
    return setting.version


def expect(stored: SealedSecretFile, name: str, key: str, last_version: int) -> None:
    """Refuse a file of another secret, or of an older version than was set last.

    Raises:
        SealError: with the reason.
    """
    if (stored.name, stored.key) != (name, key):
        raise SealError(f"its file is for {stored.key} of {stored.name}")
    if stored.version < last_version:
        raise SealError(f"its file has version {stored.version}, and {last_version} was set")


def encode(record: msgspec.Struct) -> str:
    """Return the text of a record; equal records give equal texts."""
    return msgspec.json.encode(record, order="deterministic").decode() + "\n"


def decode(text: str) -> SealedSecretFile:
    """Return the record in a file. Only the text that `encode` returns is accepted.

    Raises:
        SealError: the file differs from that text, even by a single bit.
    """
    try:
        stored = msgspec.json.decode(text, type=SealedSecretFile)
    except msgspec.MsgspecError as error:
        raise SealError("it is not a sealed secret, or it is cut off") from error
    if stored.format != FORMAT or encode(stored) != text:
        raise SealError("it was changed, or written by another version of mcpwrap")
    return stored


def unhex(text: str) -> bytes:
    """Return the bytes of a hexadecimal text.

    Raises:
        SealError: the text is not hexadecimal, or not as `hex` writes it.
    """
    with suppress(ValueError):
        found = bytes.fromhex(text)
        if found.hex() == text:  # no second form of the same bytes: not one bit may differ
            return found
    raise SealError("it is not hexadecimal")


def _bound(label: Label, sealed_with: str) -> tuple[str, ...]:
    return ("at rest", label.name, label.key, str(label.version), sealed_with)
