"""`mcpwrap secret …`: set, import, rotate, rekey and remove. `secret list` needs no root."""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from mcpwrap.as_root.lock import in_turn
from mcpwrap.as_root.secrets import store
from mcpwrap.config.env_file import parse_env_file
from mcpwrap.config.model import Config
from mcpwrap.config.parse import parse
from mcpwrap.core.secrets import aead, at_rest
from mcpwrap.core.secrets.aead import SealError
from mcpwrap.core.secrets.at_rest import MAX_SECRET_BYTES, Label
from mcpwrap.core.secrets.redact import MIN_SECRET_BYTES, is_redactable
from mcpwrap.core.wire.secret_index import SecretVersion
from mcpwrap.errors import McpwrapError, UsageError, file_error, nothing_changed
from mcpwrap.linux import root_files, tty
from mcpwrap.linux.root_files import NewFile
from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, properties, run
from mcpwrap.machine import observer, secret_index_file
from mcpwrap.plan import paths

_WHERE = "mcpwrap secret"
_RUNS = {"activating", "active", "reloading"}  # a reload waits for a start (systemctl(1))
_MAX_INPUT_BYTES = 1024 * 1024


def set_one(name: str, key: str, value: str) -> None:
    """Seal a value, with a version above all earlier ones."""
    with nothing_changed():
        set_all({(name, key): value})


def set_all(value_by_key: Mapping[tuple[str, str], str], beside: Sequence[NewFile] = ()) -> None:
    """Seal values, by server and key, each with a version above all earlier ones.

    The files in `beside` are replaced together with them, or not at all.

    Raises:
        McpwrapError: a value cannot be used; nothing was changed.
        OSError: as of `root_files.replace_all`.
    """
    for (_, key), value in value_by_key.items():
        expect_usable(key, value)
    labels = []
    with in_turn(paths.SECRETS_LOCK):
        changed = secret_index_file.read()
        store_keys, written = store.keys_or_new()
        for (name, key), value in value_by_key.items():
            known = changed.of(name, key)
            versions = [known.version if known else 0, _version_on_disk(name, key)]
            labels.append(label := Label(name, key, max(versions) + 1))
            written.append(store.sealed_file(value, label, store_keys[0]))
            changed = changed.with_one(name, key, _setting(label.version, is_set=True))
        # The values first: after an interruption a file is newer than its index, and is accepted.
        root_files.replace_all([*written, store.index_file(changed), *beside])
    for label in labels:
        _print_result(label, value_by_key[label.name, label.key])


def _print_result(label: Label, value: str) -> None:
    tty.say(f"{label.name}: {label.key} is set, version {label.version}")
    if not is_redactable(value):
        tty.warn(
            f"{label.name}: {label.key} has under {MIN_SECRET_BYTES} bytes or is a number, and is "
            "not redacted in the server's output"
        )


def say_what_is_left(name: str, key: str) -> None:
    """Print what is missing before the server gets a value that was set."""
    with suppress(UsageError):  # `apply` reports a wrong configuration
        if (name, key) not in observer.declared_secrets():
            tty.say(
                f'note: no variable of server {name} refers to it, `env = {{ X = "${{{key}}}" }}`'
            )
    if _is_running(name):
        tty.say(f"note: the running wrapper lacks it; `sudo mcpwrap restart {name}` or `… rotate`")


def import_file(text: str) -> None:
    """Set every secret of an env file for each server that declares it."""
    value_by_key = parse_env_file(text, "standard input")
    config = parse(observer.config_files())
    todo = [(name, key) for key in value_by_key for name in _declared_by(config, key)]
    unused = sorted(value_by_key.keys() - {key for _, key in todo})
    with nothing_changed():
        set_all({(name, key): value_by_key[key] for name, key in todo})
    if unused:
        tty.warn(f"not set, as no server declares them: {', '.join(unused)}")


def remove(name: str, key: str) -> None:
    """Remove a value. Its version stays, so that a file from an old backup is not accepted."""
    with in_turn(paths.SECRETS_LOCK):
        before = secret_index_file.read()
        known = before.of(name, key)
        if known is None or not known.is_set:
            raise UsageError(
                f"server {name} has no secret {key}; nothing was changed",
                where=_WHERE,
                fix="`mcpwrap secret list` lists the secrets",
                code="E-SECRET-NOT-SET",
            )
        changed = _setting(max(known.version, _version_on_disk(name, key)), is_set=False)
        with nothing_changed():
            root_files.replace_all([store.index_file(before.with_one(name, key, changed))])
        Path(paths.sealed(name, key)).unlink(missing_ok=True)
    tty.say(f"{name}: {key} is removed; a running wrapper keeps it until it is restarted")


def rotate(name: str, key: str, value: str) -> None:
    """Set a value and pass it to the running wrapper, if any, for its next sessions."""
    set_one(name, key, value)
    if _is_running(name):
        run(SYSTEMCTL, "reload", "--", paths.service_unit(name))
        tty.say(
            f"{name}: passed to the wrapper for its next sessions; open ones keep the old value "
            "(`mcpwrap status` shows if the wrapper refused it)"
        )


def rekey(recovery_key: str | None) -> None:
    """Seal everything with a new store key. A second run completes an interrupted one."""
    with in_turn(paths.SECRETS_LOCK):
        old = store.keys_or_new()[0] if recovery_key is None else _with_recovery(recovery_key)
        key_by_id = {aead.key_id(key): key for key in old}
        new = store.new_key()
        sealed = []
        for path in sorted(Path(paths.SEALED).glob("*/*.sealed")):
            label, value = _opened(path, key_by_id)
            sealed.append(store.sealed_file(value, label, new))
        with nothing_changed():
            root_files.replace_all([store.keys_file([new, *old]), *sealed])
        try:
            root_files.replace_all([store.keys_file([new])])
        except OSError as error:
            state = "all is sealed with the new key, and the file still has the old one"
            raise file_error(error, state) from error
    how = "wrapped by systemd-creds" if store.is_wrapped() else "not wrapped: a file of root's"
    tty.say(f"{len(sealed)} secrets are sealed with a new store key, {how}")
    tty.say(
        "older recovery keys open older backups only: `mcpwrap secret recovery-key` prints the new"
    )


def show_recovery_key() -> None:
    """Print the key that opens a backup of the sealed secrets on another machine."""
    found = store.keys()
    if not found:
        raise UsageError(
            "there is no store key yet",
            where=_WHERE,
            fix="set a secret first: `sudo mcpwrap secret set NAME KEY`",
            code="E-SECRET-NO-STORE-KEY",
        )
    tty.say(found[0].hex())


def purge(name: str) -> None:
    """Remove all secrets of a retired server, and their versions."""
    with suppress(FileNotFoundError):
        shutil.rmtree(f"{paths.SEALED}/{name}")
    with in_turn(paths.SECRETS_LOCK):
        root_files.replace_all([store.index_file(secret_index_file.read().without_server(name))])
    for path in (paths.capability(name), paths.bundle(name), paths.worker_token(name)):
        Path(path).unlink(missing_ok=True)


def _is_running(name: str) -> bool:
    unit = paths.service_unit(name)
    return properties([unit], ["ActiveState"])[unit]["ActiveState"] in _RUNS


def _opened(path: Path, key_by_id: Mapping[str, bytes]) -> tuple[Label, str]:
    name, key = path.parent.name, path.stem
    try:
        found = store.read(name, key)
        at_rest.expect(found, name, key, 0)  # else a misplaced file would be sealed for its place
        return Label(name, key, found.version), at_rest.take(found, key_by_id)
    except SealError as error:
        raise McpwrapError(
            f"{error}; nothing was changed",
            where=str(path),
            fix=f"restore it, or `mcpwrap secret remove {name} {key}`; then rekey again",
            code="E-SECRET-SEALED-DAMAGED",
        ) from None


def _with_recovery(text: str) -> list[bytes]:
    """Return the recovery key, and before it the keys that this machine can open itself.

    An interrupted run has left some files sealed with one of these.
    """
    try:
        own = store.keys()
    except McpwrapError:
        own = []
    with suppress(ValueError):
        key = bytes.fromhex(text.strip())
        if len(key) == aead.KEY_BYTES:
            return list(dict.fromkeys([*own, key]))
    raise UsageError(
        "this is not a recovery key; nothing was changed",
        where=_WHERE,
        fix="give the 64 hexadecimal digits that `mcpwrap secret recovery-key` printed",
        code="E-SECRET-RECOVERY-KEY",
    )


def _declared_by(config: Config, key: str) -> list[str]:
    return [name for name, server in config.servers.items() if key in server.secrets()]


def _version_on_disk(name: str, key: str) -> int:
    try:
        return store.read(name, key).version
    except SealError:
        return 0  # there is no file, or a damaged one, which is replaced now


def _setting(version: int, *, is_set: bool) -> SecretVersion:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return SecretVersion(version=version, is_set=is_set, changed_at=now)


def expect_usable(key: str, value: str) -> None:
    """Refuse a value that no environment variable can hold.

    Raises:
        UsageError: it is empty, too long, or has a NUL.
    """
    size = len(value.encode())
    if not value or "\0" in value or size > MAX_SECRET_BYTES:
        why = "empty" if not value else "a NUL" if "\0" in value else f"{size} bytes"
        raise UsageError(
            f"the value of {key} cannot be used: {why}; nothing was changed",
            where=_WHERE,
            fix=f"give text without NUL, of 1 to {MAX_SECRET_BYTES} bytes",
            code="E-SECRET-VALUE",
        )


def value_from(raw: bytes) -> str:
    """Return the text of standard input. A value of one line loses its newline, a file keeps it."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise UsageError(
            "the value is not UTF-8; nothing was changed",
            where=_WHERE,
            fix="encode it as base64",
            code="E-SECRET-VALUE",
        ) from None
    return text[:-1] if text.endswith("\n") and text.count("\n") == 1 else text


def read_all() -> bytes:
    """Return the content of standard input.

    Raises:
        UsageError: it is longer than 1 MiB, more than any value or file of values has.
    """
    with os.fdopen(0, "rb", closefd=False) as file:
        raw = file.read(_MAX_INPUT_BYTES + 1)
    if len(raw) > _MAX_INPUT_BYTES:
        raise UsageError(
            "over 1 MiB; nothing was changed",
            where="standard input",
            fix="send less: a value, or an env file of values",
            code="E-USAGE-INPUT-SIZE",
        )
    return raw
