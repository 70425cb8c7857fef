"""Program `mcpwrap-audit`: root key of the audit, key of each epoch, removal of old files.

It runs as root at each start of the gate. `mcpwrap-audit start` is the gate's ExecStartPre= and
gives it the key with which its audit begins; `begun` is its ExecStartPost=.
All keys of the audit come from the root key, which stays here: only root can check what the gate
wrote, and `mcpwrap audit` has it from here.
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
_FIX = "nothing was removed: `mcpwrap audit prune` says what may go"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def main() -> int:
    """Do what the unit of the gate or `mcpwrap audit` asks for."""
    os.umask(0o077)
    prctl.forbid_dumps()
    try:
        return _do_as_asked(sys.argv[1:])
    except (McpwrapError, OSError) as error:
        told = file_error(error) if isinstance(error, OSError) else error
        log_line(f"mcpwrap-audit: {told}")
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
            tty.warn("mcpwrap-audit: is for the gate's unit and `mcpwrap audit`")
            return EXIT_USAGE
    return EXIT_OK


def start() -> None:
    """Begin an epoch: the next number, and a key that only this run of the gate is given.

    One that never came to be is begun again: else a full disk would make a new one each second.
    """
    with in_turn(paths.AUDIT_LOCK):
        now = _next(keys())
        root_files.replace(paths.AUDIT_KEYS, encode(now), mode=0o600)
        boot = bytes.fromhex(_BOOT_ID.read_text().replace("-", ""))
        _give(records.encode_start(records.start_of(now.root_key, now.epochs, boot)))


def _next(before: Keys) -> Keys:
    if not before.is_begun and not _is_there(before.epochs):
        return before
    epoch = before.epochs + 1
    while _is_there(epoch):  # which nobody of ours put there
        epoch += 1
    return replace(before, epochs=epoch, is_begun=False)


def _is_there(epoch: int) -> bool:
    return os.path.lexists(Path(paths.AUDIT, records.folder_of(epoch)))


def begun() -> None:
    """Take note that the gate could write down that it has begun, and take its start away."""
    with in_turn(paths.AUDIT_LOCK):
        root_files.replace(paths.AUDIT_KEYS, encode(replace(keys(), is_begun=True)), mode=0o600)
        Path(paths.AUDIT_START).unlink(missing_ok=True)


def keys() -> Keys:
    """Return the root key and what has become of the audit; a new key where there was never one.

    Raises:
        McpwrapError: the file is damaged: with another key nobody could check what there is.
    """
    try:
        return msgspec.json.decode(root_files.read_roots_secret(paths.AUDIT_KEYS), type=Keys)
    except FileNotFoundError:
        return Keys(root_key=os.urandom(KEY_BYTES), epochs=0)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise McpwrapError(
            f"damaged: {error}",
            where=paths.AUDIT_KEYS,
            fix="restore the file from a backup; without it what was audited cannot be checked: "
            f"to begin anew, move it and {paths.AUDIT} away",
        ) from error


def remove(before: int, names: Sequence[str]) -> None:
    """Remove files of the audit, EPOCH/NAME, all of which were over before that time.

    That some may be missing is noted first. A master chain goes with its whole epoch, and none goes
    before those that are older.

    Raises:
        McpwrapError: what is asked for cannot be, and nothing was removed; or some is left.
    """
    _expect_past(before)
    for name in names:
        if not _NAME.fullmatch(name):
            raise McpwrapError(f"{name!r} is no file of the audit", where=paths.AUDIT, fix=_FIX)
    whole = {_epoch_of(name) for name in names if name.endswith(records.MASTER)}
    with in_turn(paths.AUDIT_LOCK):
        now = keys()
        first = max([now.first_epoch, *(epoch + 1 for epoch in whole)])
        if first > now.epochs:
            raise McpwrapError("the last epoch is not over", where=paths.AUDIT, fix=_FIX)
        if not whole.issuperset(range(now.first_epoch, first)):
            raise McpwrapError("an older epoch would stay", where=paths.AUDIT, fix=_FIX)
        removed_before = max(now.removed_before, before)
        noted = replace(now, first_epoch=first, removed_before=removed_before)
        root_files.replace(paths.AUDIT_KEYS, encode(noted), mode=0o600)
        left = [name for name in names if not _is_gone(*name.split("/"))]
        for epoch in {_epoch_of(name) for name in names if _epoch_of(name) < first}:
            with suppress(OSError):  # what else there is in it nobody of ours put there
                Path(paths.AUDIT, records.folder_of(epoch)).rmdir()
    if left:
        what = f"{left[0]} cannot be removed; {len(names) - len(left)} of {len(names)} files were"
        raise McpwrapError(what, where=paths.AUDIT, fix="find out who put it there")


def _expect_past(before: int) -> None:
    """Refuse to note that what is not yet recorded may be missing."""
    if before > time.time():
        what = f"{before} is not past"
        raise McpwrapError(what, where=paths.AUDIT, fix=_FIX)


def _epoch_of(name: str) -> int:
    return int(name.partition("/")[0])


def _is_gone(folder: str, name: str) -> bool:
    """Remove a file of the gate's; say whether it is no more.

    The gate may put anything there, and at any moment: neither name leads through a link, a folder
    is never removed as a file, and of a file with several names only this one goes. unlink(2).
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
    """Return the text of the file."""
    return msgspec.json.encode(value).decode() + "\n"


def _give(start_file: bytes) -> None:
    """Leave the start where the gate can read it, and nobody else."""
    path = Path(paths.AUDIT_START)
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o400)
    with os.fdopen(fd, "wb") as file:
        gate = pwd.getpwnam("mcpwrap-gate")
        os.fchown(fd, gate.pw_uid, gate.pw_gid)
        file.write(start_file)
