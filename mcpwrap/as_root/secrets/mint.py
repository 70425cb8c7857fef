"""Program `mcpwrap-mint`: mints the capability of one wrapper start, and seals its secrets.

It runs as root at each start of a wrapper that has secrets. `mcpwrap-mint start NAME` is its
ExecStartPre=, `mcpwrap-mint reload NAME` its ExecReload=. It is a separate program because every
cold start waits for it: it imports no more than it needs.

At a start it also makes the key that seals the server's OAuth logins, or the token that a Python
server sends to the worker, if that is missing. The worker gets the token's hash.
"""

import base64
import hashlib
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from mcpwrap.as_root import server_descriptor
from mcpwrap.as_root.lock import in_turn
from mcpwrap.as_root.secrets import store
from mcpwrap.core.names import OAUTH_KEY, account_of, is_server_name
from mcpwrap.core.secrets import aead
from mcpwrap.core.secrets import capability as capabilities
from mcpwrap.core.secrets.at_rest import Label
from mcpwrap.core.secrets.capability import Capability, Randomness
from mcpwrap.core.wire.execution.execute_api import TOKEN
from mcpwrap.core.wire.secret_index import SecretVersion
from mcpwrap.core.wire.server_files import ServerSpec
from mcpwrap.errors import (
    EXIT_FAILED,
    EXIT_OK,
    EXIT_USAGE,
    McpwrapError,
    file_error,
    nothing_changed,
)
from mcpwrap.linux import accounts, clocks, root_files, tty
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.root_files import NewFile
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.machine import secret_index_file
from mcpwrap.plan import paths


def main() -> int:
    """Run for one start or reload. Standard error is the journal."""
    os.umask(0o022)
    prctl.forbid_dumps()
    try:
        return _do_as_asked(sys.argv[1:])
    except OSError as error:
        log_line(f"mcpwrap-mint: {file_error(error)}")
        return EXIT_FAILED


def _do_as_asked(argv: list[str]) -> int:
    match argv:
        case ["start", name] if is_server_name(name):
            return start(name, os.environ["INVOCATION_ID"])  # noqa: TID251 - a main()
        case ["reload", name] if is_server_name(name):
            return reload(name)
        case _:
            tty.warn(
                "mcpwrap-mint: only the units of mcpwrap start this program "
                "[E-USAGE-INTERNAL-PROGRAM]"
            )
            return EXIT_USAGE


def start(name: str, invocation_id: str) -> int:
    """Mint. If that fails, the capability has the reason, which the wrapper sends to its agents."""
    try:
        spec = server_descriptor.read(name)
        if spec.has_oauth():
            with nothing_changed():
                ensure_key(name, OAUTH_KEY)
        if _has_local_worker(spec):
            with nothing_changed():
                ensure_key(name, TOKEN)
        secret_by_key = store.take(name, spec.secrets)
        if _has_local_worker(spec):
            write_token_hash(name, secret_by_key[TOKEN].value)
    except McpwrapError as error:
        _write_capability(Capability(name=name, refused=_reason(error)))
        return EXIT_OK
    random = Randomness(os.urandom(8).hex(), os.urandom(aead.KEY_BYTES))
    minted = capabilities.mint(name, invocation_id, random, clocks.now())
    _write_bundle(minted, secret_by_key)
    _write_capability(minted)
    return EXIT_OK


def reload(name: str) -> int:
    """Seal the present secrets for the capability of the running wrapper."""
    try:
        held = _capability_of_wrapper(name)
        spec = server_descriptor.read(name)
        secret_by_key = store.take(name, spec.secrets)
        _write_bundle(held, secret_by_key)
        if _has_local_worker(spec):
            write_token_hash(name, secret_by_key[TOKEN].value)
    except McpwrapError as error:
        log_line(f"mcpwrap-mint: {error}; nothing was changed")
        return EXIT_FAILED
    return EXIT_OK


def ensure_key(name: str, key: str) -> None:
    """Make a random secret of server `name`, unless there is one.

    An existing key that cannot be opened is left: a restored backup makes it usable again.

    Raises:
        McpwrapError: the store cannot be read, or has no store key.
        OSError: a file of the store cannot be written.
    """
    with in_turn(paths.SECRETS_LOCK):
        before = secret_index_file.read()
        known = before.of(name, key)
        if known and known.is_set:
            return
        label = Label(name, key, known.version + 1 if known else 1)
        value = base64.b64encode(os.urandom(aead.KEY_BYTES)).decode()
        store_keys, made = store.keys_or_new()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        setting = SecretVersion(version=label.version, is_set=True, changed_at=now)
        sealed = store.sealed_file(value, label, store_keys[0])
        changed = store.index_file(before.with_one(name, key, setting))
        root_files.replace_all([*made, sealed, changed])


def _has_local_worker(spec: ServerSpec) -> bool:
    return spec.python is not None and not spec.python.worker


def write_token_hash(pool: str, token: str) -> None:
    """Write the hash of a pool's token, by which the worker recognises the pool."""
    file = token_hash_file(pool, token)
    with suppress(FileNotFoundError):
        if Path(file.path).read_text(encoding="ascii", errors="replace") == file.text:
            return  # a disk that is full need not be written to
    with nothing_changed():
        root_files.replace_all([file])


def token_hash_file(pool: str, token: str) -> NewFile:
    """Return the file with the hash of a pool's token.

    The token is random, so its hash does not lead back to it. The folder is for the worker alone.
    """
    digest = hashlib.sha256(token.encode()).hexdigest()
    return NewFile(path=paths.worker_token(pool), text=f"{digest}\n")


def _reason(error: McpwrapError) -> str:
    """Return the error in one line, as agents receive it."""
    return f"{error.problem}; {error.fix} [{error.code}]"


def _capability_of_wrapper(name: str) -> Capability:
    """Return the capability that the running wrapper was started with."""
    try:
        held = msgspec.json.decode(Path(paths.capability(name)).read_bytes(), type=Capability)
    except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
        held = Capability(name=name, refused="it was not minted")
    if not held.refused and not held.expires_boot_s:  # its wrapper could not read a bundle
        held = Capability(name=name, refused="it was minted by an earlier version of mcpwrap")
    if held.refused:
        raise McpwrapError(
            f"the wrapper has no capability to seal for ({held.refused})",
            where=f"server {name}",
            fix=f"`sudo mcpwrap restart {name}`",
            code="E-SECRET-NO-CAPABILITY",
        )
    return held


def _write_capability(capability: Capability) -> None:
    text = capabilities.encode(capability)
    root_files.replace(paths.capability(capability.name), text, mode=0o600)


def _write_bundle(capability: Capability, secret_by_key: dict[str, capabilities.Secret]) -> None:
    """Write the sealed secrets where only the wrapper's account can read them."""
    path = Path(paths.bundle(capability.name))
    path.parent.mkdir(mode=0o750, exist_ok=True)
    os.chown(path.parent, 0, accounts.gid_of(account_of(capability.name)) or 0)
    nonces = [os.urandom(aead.NONCE_BYTES) for _ in secret_by_key]
    sealed = capabilities.bundle(capability, secret_by_key, nonces, clocks.now())
    root_files.replace(str(path), capabilities.encode(sealed), mode=0o644)
