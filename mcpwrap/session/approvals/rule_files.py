"""Files of the approval rules, one each: the gate's, or those of a user of `mcpwrap run`.

A file is replaced as a whole. A rule that a person saves or revokes survives a power cut as such;
the count of a rule survives a kill of the gate, and its last seconds may not survive a power cut,
since each call would wait for the disk.
"""

import os
from contextlib import suppress
from pathlib import Path

from mcpwrap.core.approval import rule_file
from mcpwrap.core.approval.approval_rule import ApprovalRule
from mcpwrap.core.approval.rule_file import MAX_FILE_BYTES, SUFFIX, DamagedRuleError
from mcpwrap.linux.folder_sync import sync_folder
from mcpwrap.linux.systemd.stderr_log import log_line

FOLDER = Path(rule_file.FOLDER)  # the gate's
_TEMPORARY = "."
_MODE = 0o600


def read_all(folder: Path | None = None) -> list[ApprovalRule]:
    """Return the stored rules, oldest first. A damaged file is logged, and left for an operator."""
    rules = []
    for path in _paths(folder or FOLDER):
        if path.name.startswith(_TEMPORARY):  # of a gate that was killed
            path.unlink(missing_ok=True)
            continue
        try:
            rules.append(rule_file.decode(_content(path), path.name.removesuffix(SUFFIX)))
        except (OSError, DamagedRuleError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            log_line(f"{path}: not in force: {why} [E-APPROVAL-RULE-DAMAGED]")
    return sorted(rules, key=lambda rule: rule.made_at)


def write(rule: ApprovalRule, folder: Path | None = None, *, is_new: bool) -> None:
    """Write a rule; a new one is on the disk when this returns.

    Raises:
        OSError: it cannot be written, and the file is as before.
    """
    replace(_path(folder or FOLDER, rule.id), rule_file.encode(rule), is_synced=is_new)


def replace(path: Path, content: bytes, *, is_synced: bool) -> None:
    """Write a file as a whole, readable for its owner; synced, it is on the disk on return.

    One process at a time writes a file: several ones that share it hold a lock.

    Raises:
        OSError: it cannot be written, and the file is as before.
    """
    temporary = path.with_name(f"{_TEMPORARY}{path.name}")
    try:
        temporary.touch(_MODE)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            if is_synced:
                os.fsync(file.fileno())
        temporary.rename(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
    if is_synced:
        sync_folder(path.parent)


def remove(id_: str, folder: Path | None = None) -> None:
    """Remove a rule; when this returns, a power cut does not bring it back.

    Raises:
        OSError: it cannot be removed.
    """
    path = _path(folder or FOLDER, id_)
    with suppress(FileNotFoundError):
        path.unlink()
        sync_folder(path.parent)


def _paths(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError):
        return [path for path in folder.iterdir() if path.name.endswith(SUFFIX)]
    return []


def _path(folder: Path, id_: str) -> Path:
    return folder / f"{id_}{SUFFIX}"


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_FILE_BYTES)
