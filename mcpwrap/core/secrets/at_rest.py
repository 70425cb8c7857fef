"""Secrets at rest: one sealed file each, and the list of the versions that were set.

`/var/lib/mcpwrap/sealed/NAME/KEY.sealed` is for root alone. `/var/lib/mcpwrap/secrets.json` is
readable by everybody: it has names and versions, and no value.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from mcpwrap.core.secrets import aead
from mcpwrap.core.secrets.aead import SealError
from mcpwrap.core.wire.secret_index import SecretVersion

FORMAT = 1
# One environment variable may have 128 KiB (execve(2)); a pipe holds 64.
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
    """Return the value of a secret.

    Raises:
        SealError: the store has no such key, or the file is not as it was written.
    """
    store_key = key_by_id.get(stored.sealed_with)
    if store_key is None:
        raise SealError("sealed with another store key than this machine's")
    bound = _bound(Label(stored.name, stored.key, stored.version), stored.sealed_with)
    return aead.unseal(unhex(stored.ciphertext), store_key, bound=bound).decode()


def last_set(setting: SecretVersion | None) -> int:
    """Return the version that was set last.

    Raises:
        SealError: none was, or it was removed since.
    """
    if setting is None or not setting.is_set:
        raise SealError("it is not set")
    return setting.version


def expect(stored: SealedSecretFile, name: str, key: str, last_version: int) -> None:
    """Refuse a file that lies where another belongs, or an older one than was set last.

    Raises:
        SealError: with what is wrong.
    """
    if (stored.name, stored.key) != (name, key):
        raise SealError(f"its file is that of {stored.name}'s {stored.key}")
    if stored.version < last_version:
        raise SealError(f"its file has version {stored.version}, and {last_version} was set")


def encode(record: msgspec.Struct) -> str:
    """Return the text of a record; equal records give equal texts."""
    return msgspec.json.encode(record, order="deterministic").decode() + "\n"


def decode(text: str) -> SealedSecretFile:
    """Return the record in a file, and take no text but the one that `encode` gives.

    Raises:
        SealError: it is no such file; a single bit that differs is enough.
    """
    try:
        stored = msgspec.json.decode(text, type=SealedSecretFile)
    except msgspec.MsgspecError as error:
        raise SealError("it is no sealed secret, or cut off") from error
    if stored.format != FORMAT or encode(stored) != text:
        raise SealError("it was changed, or written by another version of mcpwrap")
    return stored


def unhex(text: str) -> bytes:
    """Return the bytes of a hexadecimal text.

    Raises:
        SealError: it is none.
    """
    with suppress(ValueError):
        found = bytes.fromhex(text)
        if found.hex() == text:  # no second spelling: not one bit may differ
            return found
    raise SealError("it is not hexadecimal")


def _bound(label: Label, sealed_with: str) -> tuple[str, ...]:
    return ("at rest", label.name, label.key, str(label.version), sealed_with)
