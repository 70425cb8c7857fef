"""Program `mcpwrap-audit`: root key of the audit, key of each epoch, removal of old files.

It runs as root at each start of the gate. `mcpwrap-audit start`, its ExecStartPre=, gives the gate
the key with which its audit begins; `mcpwrap-audit begun` is its ExecStartPost=.
All keys of the audit are derived from the root key, which only root can read: only root can verify
what the gate wrote. `mcpwrap audit` gets the root key from this program.
"""

import os
import pwd
import re
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from mcpwrap.as_root.lock import in_turn
from mcpwrap.core.audit import records
from mcpwrap.core.audit.hash_chain import KEY_BYTES
from mcpwrap.core.audit.records import Keys
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE, McpwrapError, file_error
from mcpwrap.linux import root_files, tty
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.plan import paths

_TIME = re.compile(r"[0-9]{1,12}")
_MAX_NAMES_CHARS = 64 * 1024 * 1024
_NAME = re.compile(r"[0-9]{8}/([0-9]+-[0-9]+|master)\.jsonl")
_FIX = "nothing was removed: `mcpwrap audit prune` lists what may be removed"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def main() -> int:
    """Run for the gate's unit or for `mcpwrap audit`."""
    os.umask(0o077)
    prctl.forbid_dumps()
    try:
        return _do_as_asked(sys.argv[1:])
    except (McpwrapError, OSError) as error:
        failure = file_error(error) if isinstance(error, OSError) else error
        log_line(f"mcpwrap-audit: {failure}")
        return EXIT_FAILED


def _do_as_asked(argv: list[str]) -> int:
    match argv:
        case ["start"]:
            start()
        case ["begun"]:
            begun()
        case ["keys"]:
            tty.say(encode(keys()).removesuffix("\n"))
        case ["remove", before] if _TIME.fullmatch(before):
            remove(int(before), sys.stdin.read(_MAX_NAMES_CHARS).split())
        case _:
            tty.warn(
                "mcpwrap-audit: only the gate's unit and `mcpwrap audit` start this program "
                "[E-USAGE-INTERNAL-PROGRAM]"
            )
            return EXIT_USAGE
    return EXIT_OK


def start() -> None:
    """Begin an epoch: the next number, and a key that only this run of the gate is given.

    The number of an epoch that was not recorded is used again: otherwise a full disk would use up
    one each second.
    """
    with in_turn(paths.AUDIT_LOCK):
        now = _next(keys())
        root_files.replace(paths.AUDIT_KEYS, encode(now), mode=0o600)
        boot = bytes.fromhex(_BOOT_ID.read_text().replace("-", ""))
        _write_start(records.encode_start(records.start_of(now.root_key, now.epochs, boot)))


def _next(before: Keys) -> Keys:
    if not before.is_begun and not _is_there(before.epochs):
        return before
    epoch = before.epochs + 1
    while _is_there(epoch):  # no program of mcpwrap made this folder
        epoch += 1
    return replace(before, epochs=epoch, is_begun=False)


def _is_there(epoch: int) -> bool:
    return os.path.lexists(Path(paths.AUDIT, records.folder_of(epoch)))


def begun() -> None:
    """Note that the gate has recorded the begin of the epoch, and remove its start file."""
    with in_turn(paths.AUDIT_LOCK):
        root_files.replace(paths.AUDIT_KEYS, encode(replace(keys(), is_begun=True)), mode=0o600)
        Path(paths.AUDIT_START).unlink(missing_ok=True)


def keys() -> Keys:
    """Return the root key and the state of the epochs; a new key if the file does not exist.

    Raises:
        McpwrapError: the file is damaged. With a new key the existing audit could not be verified.
    """
    try:
        return msgspec.json.decode(root_files.read_roots_secret(paths.AUDIT_KEYS), type=Keys)
    except FileNotFoundError:
        return Keys(root_key=os.urandom(KEY_BYTES), epochs=0)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise McpwrapError(
            f"the file is damaged: {error}",
            where=paths.AUDIT_KEYS,
            fix="restore it from a backup: without it the existing audit cannot be verified; "
            f"to begin a new audit, move it and {paths.AUDIT} away",
            code="E-AUDIT-KEYS-DAMAGED",
        ) from error


def remove(before: int, names: Sequence[str]) -> None:
    """Remove files of the audit, EPOCH/NAME, that were complete before that time.

    First it is noted that files may be missing. A master chain is removed with its whole epoch, and
    only if no older epoch remains.

    Raises:
        McpwrapError: the request is not allowed, and nothing was removed; or some files remain.
    """
    _expect_past(before)
    for name in names:
        if not _NAME.fullmatch(name):
            raise McpwrapError(
                f"{name!r} is not a file of the audit",
                where=paths.AUDIT,
                fix=_FIX,
                code="E-AUDIT-PRUNE-REFUSED",
            )
    whole = {_epoch_of(name) for name in names if name.endswith(records.MASTER)}
    with in_turn(paths.AUDIT_LOCK):
        now = keys()
        first = max([now.first_epoch, *(epoch + 1 for epoch in whole)])
        if first > now.epochs:
            raise McpwrapError(
                "the last epoch is not over",
                where=paths.AUDIT,
                fix=_FIX,
                code="E-AUDIT-PRUNE-REFUSED",
            )
        if not whole.issuperset(range(now.first_epoch, first)):
            raise McpwrapError(
                "an older epoch would stay",
                where=paths.AUDIT,
                fix=_FIX,
                code="E-AUDIT-PRUNE-REFUSED",
            )
        removed_before = max(now.removed_before, before)
        noted = replace(now, first_epoch=first, removed_before=removed_before)
        root_files.replace(paths.AUDIT_KEYS, encode(noted), mode=0o600)
        left = [name for name in names if not _is_gone(*name.split("/"))]
        for epoch in {_epoch_of(name) for name in names if _epoch_of(name) < first}:
            with suppress(OSError):  # it holds other files, which no program of mcpwrap made
                Path(paths.AUDIT, records.folder_of(epoch)).rmdir()
    if left:
        raise McpwrapError(
            f"{left[0]} cannot be removed; {len(names) - len(left)} of {len(names)} files were",
            where=paths.AUDIT,
            fix="find out which account made it",
            code="E-AUDIT-PRUNE-INCOMPLETE",
        )


def _expect_past(before: int) -> None:
    """Refuse a time in the future: records that are not written yet would count as removed."""
    if before > time.time():
        raise McpwrapError(
            f"{before} is not past", where=paths.AUDIT, fix=_FIX, code="E-AUDIT-PRUNE-REFUSED"
        )


def _epoch_of(name: str) -> int:
    return int(name.partition("/")[0])


def _is_gone(folder: str, name: str) -> bool:
    """Remove a file of the audit; return whether it is gone.

    The gate's account may put anything there, at any moment: neither name is followed through a
    link, a folder is never removed as a file, and of a file with several names only this name is
    removed. Source: unlink(2).
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(Path(paths.AUDIT, folder), flags)
        try:
            os.unlink(name, dir_fd=fd)
        finally:
            os.close(fd)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def encode(value: Keys) -> str:
    """Return the text of the key file."""
    return msgspec.json.encode(value).decode() + "\n"


def _write_start(start_file: bytes) -> None:
    """Write the start file, which only the gate's account can read."""
    path = Path(paths.AUDIT_START)
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o400)
    with os.fdopen(fd, "wb") as file:
        gate = pwd.getpwnam("mcpwrap-gate")
        os.fchown(fd, gate.pw_uid, gate.pw_gid)
        file.write(start_file)
