"""Secrets at rest: the sealed files, and the store key that opens them."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from mcpwrap.core.names import OAUTH_KEY
from mcpwrap.core.secrets import aead, at_rest
from mcpwrap.core.secrets.aead import SealError
from mcpwrap.core.secrets.at_rest import Label, SealedSecretFile
from mcpwrap.core.secrets.capability import Secret
from mcpwrap.core.wire.secret_index import SecretIndex
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import root_files
from mcpwrap.linux.root_files import NewFile
from mcpwrap.linux.systemd.systemctl import ToolError, run
from mcpwrap.machine import secret_index_file
from mcpwrap.plan import paths

CREDS = "/usr/bin/systemd-creds"
_CREDENTIAL = "--name=mcpwrap-store"  # systemd-creds(1): the credential opens only under this name
_RESTORE = "restore the file from a backup"


class StoreFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Content of `store.json`. During a rekey it has the old keys too, after the new one."""

    format: int = 1
    wrapped_by: Literal["systemd-creds", "nothing"]
    keys: str


def index_file(changed: SecretIndex) -> NewFile:
    """Return the index of secrets as a file."""
    return NewFile(path=paths.SECRETS, text=at_rest.encode(changed))


def keys() -> list[bytes]:
    """Return the store keys. The first one is for sealing.

    Raises:
        McpwrapError: this machine cannot open them, or accounts other than root can use the file.
    """
    file = _store_file()
    if file is None:
        return []
    text = file.keys
    if file.wrapped_by == "systemd-creds":
        try:
            text = run(CREDS, "decrypt", _CREDENTIAL, "-", "-", stdin=file.keys)
        except ToolError as error:
            raise McpwrapError(
                f"this machine cannot open the store key: {error.problem}",
                where=paths.STORE,
                fix="on another machine than the one that made it: `mcpwrap secret rekey "
                "--recovery-key`",
                code="E-SECRET-STORE-LOCKED",
            ) from error
    try:
        return [bytes.fromhex(line) for line in text.split()]
    except ValueError:
        raise McpwrapError(
            "the store key is damaged",
            where=paths.STORE,
            fix=_RESTORE,
            code="E-SECRET-STORE-DAMAGED",
        ) from None


def keys_or_new() -> tuple[list[bytes], list[NewFile]]:
    """Return the store keys. Without keys and secrets, return a new key, and its file to write."""
    found = keys()
    if found:
        return found, []
    if any(Path(paths.SEALED).glob("*/*.sealed")):
        raise McpwrapError(
            "the store key is missing, and there are sealed secrets",
            where=paths.STORE,
            fix=f"{_RESTORE}; or `mcpwrap secret rekey --recovery-key`",
            code="E-SECRET-STORE-MISSING",
        )
    new = [new_key()]
    return new, [keys_file(new)]


def new_key() -> bytes:
    """Return a new random key."""
    return os.urandom(aead.KEY_BYTES)


def keys_file(new: list[bytes]) -> NewFile:
    """Return a file with these keys, wrapped by the machine's TPM, or by the host's key."""
    text = "\n".join(key.hex() for key in new)
    try:
        wrapped = run(CREDS, "encrypt", _CREDENTIAL, "-", "-", stdin=text)
        file = StoreFile(wrapped_by="systemd-creds", keys="".join(wrapped.split()))
    except ToolError as error:  # not installed, or it cannot store a key of its own
        if is_wrapped():
            raise McpwrapError(
                f"systemd-creds wrapped the store key before, and fails now: {error.problem}; "
                "nothing was changed",
                where=paths.STORE,
                fix="fix the cause named above, then retry",
                code="E-SECRET-STORE-WRAP",
            ) from error
        file = StoreFile(wrapped_by="nothing", keys=text)
    return NewFile(path=paths.STORE, text=at_rest.encode(file), mode=0o600)


def is_wrapped() -> bool:
    """Return whether opening the store key needs the TPM or, without one, the host's key file."""
    file = _store_file()
    return file is not None and file.wrapped_by != "nothing"


def read(name: str, key: str) -> SealedSecretFile:
    """Return one sealed secret from the disk.

    Raises:
        SealError: there is no such file, or it is damaged.
        UsageError: accounts other than root can use the file.
    """
    try:
        return at_rest.decode(root_files.read_roots_secret(paths.sealed(name, key)).decode())
    except FileNotFoundError:
        raise SealError("its file is gone") from None
    except UnicodeDecodeError:
        raise SealError("its file is not a sealed secret") from None


def sealed_file(value: str, label: Label, store_key: bytes) -> NewFile:
    """Seal one secret, make its folder, and return its file."""
    path = Path(paths.sealed(label.name, label.key))
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sealed = at_rest.put(value, label, store_key, os.urandom(aead.NONCE_BYTES))
    return NewFile(path=str(path), text=at_rest.encode(sealed), mode=0o600)


def take(name: str, wanted: Sequence[str]) -> dict[str, Secret]:
    """Return the secrets of one server.

    Raises:
        McpwrapError: one is not set, is damaged, or can be used by accounts other than root.
    """
    try:
        return _take(name, wanted)
    except UsageError as error:
        problem = f"{error.where}: {error.problem}"
        raise McpwrapError(
            problem, where=f"server {name}", fix=error.fix, code=error.code
        ) from error
    except McpwrapError:  # perhaps the files changed between two reads
        return _take(name, wanted)


def _take(name: str, wanted: Sequence[str]) -> dict[str, Secret]:
    known, key_by_id = secret_index_file.read(), {aead.key_id(key): key for key in keys()}
    found = {}
    for key in wanted:
        try:
            last_version = at_rest.last_set(known.of(name, key))
            sealed = read(name, key)
            at_rest.expect(sealed, name, key, last_version)
            found[key] = Secret(at_rest.take(sealed, key_by_id), sealed.version)
        except SealError as error:
            raise McpwrapError(
                f"the secret {key} cannot be used: {error}",
                where=f"server {name}",
                fix=_fix_of(name, key),
                code="E-SECRET-UNUSABLE",
            ) from None
    return found


def _fix_of(name: str, key: str) -> str:
    if key != OAUTH_KEY:
        return f"`sudo mcpwrap secret set {name} {key}`"
    return f"`sudo mcpwrap secret remove {name} {key}`, restart it and log in again"


def _store_file() -> StoreFile | None:
    try:
        file = msgspec.json.decode(root_files.read_roots_secret(paths.STORE), type=StoreFile)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise McpwrapError(
            f"the file is damaged: {error}",
            where=paths.STORE,
            fix=_RESTORE,
            code="E-SECRET-STORE-DAMAGED",
        ) from error
    if file.format != 1:
        raise McpwrapError(
            f"the file has the unknown format {file.format}",
            where=paths.STORE,
            fix=_RESTORE,
            code="E-SECRET-STORE-DAMAGED",
        )
    return file
