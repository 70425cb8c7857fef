"""Records of `wrap`, one for each file that it rewrites: the original bytes, and the changes.

A record is two files of one account: `backup-0001-NAME`, which a person can copy back, and
`record-0001-NAME.json`, which describes the backup and is written after it. A backup without a
record is left to the person.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import msgspec

from mcpwrap.config.agent_files.known_agents import BY_ID
from mcpwrap.config.agent_files.parsed_file import MAX_BYTES
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import root_files
from mcpwrap.machine.agent_files.files import UnreadableFile, read

_NAME = re.compile(r"(?:backup|record)-([0-9]{4,9})-.*")
_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]")
_MAX_NAME_CHARS = 100  # of the file's own name in that of its backup
_Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Keys = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapRecord:
    """Record of one file, rewritten once."""

    path: Path  # absolute
    agent: str  # key of `config.agent_files.known_agents.BY_ID`; its entry schema was used
    entries: tuple[tuple[str, ...], ...]  # keys of each wrapped entry in the file, its name last
    before: bytes
    after_sha256: str
    hub: str = ""  # name of the one entry that leads to all of their servers
    run_program: str = ""  # the mcpwrap whose `run` starts them; "": they lead to servers of root


class _Written(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """On-disk form of a record, without the bytes."""

    path: str
    agent: str
    entries: tuple[_Keys, ...]
    before_sha256: _Digest
    after_sha256: _Digest
    hub: str = ""  # omitted where there is no hub: an older version reads such records too
    run_program: str = ""


def folder(variables: Mapping[str, str]) -> Path:
    """Return the folder of the records. A relative `XDG_STATE_HOME` is ignored (XDG)."""
    state = Path(variables.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        state = Path(variables["HOME"], ".local/state")
    return state / "mcpwrap"


def save(folder: Path, record: WrapRecord) -> Path:
    """Write a record so that it survives a power failure; return the path of its backup.

    Raises:
        McpwrapError: it cannot be written, and nothing is left of it.
    """
    try:
        text = _text(record)
        backup = _with_backup(_made(folder), record)
        path = _record_of(backup)
        try:
            root_files.replace(str(path), text, mode=0o600)
        except OSError:
            for left in (backup, path.with_name(f".{path.name}.new")):
                left.unlink(missing_ok=True)
            raise
    except UnicodeError as error:
        raise _not_saved(
            folder,
            "the path of the file, or an entry's name, is not UTF-8",
            "give the file or the entry a name in UTF-8",
            code="E-WRAP-RECORD-NOT-UTF8",
        ) from error
    except OSError as error:
        raise _not_saved(
            folder,
            error.strerror or str(error),
            "make room there, and let this account write to it",
            code="E-WRAP-RECORD-WRITE",
        ) from error
    return backup


def records(folder: Path) -> list[WrapRecord]:
    """Return all records, oldest first.

    Raises:
        McpwrapError: a record is damaged, or its backup was changed.
    """
    return [record for _, record in _kept(folder)]


def run_programs(folder: Path) -> frozenset[str]:
    """Return the programs that `wrap --unprivileged` wrote into files, of all sound records."""
    found: set[str] = set()
    for path in folder.glob("record-*.json"):
        with suppress(msgspec.MsgspecError, UnicodeError, McpwrapError):
            found.add(msgspec.json.decode(_bytes(path), type=_Written).run_program)
    return frozenset(found - {""})


def backup_of(folder: Path, record: WrapRecord) -> Path | None:
    """Return the path of a record's backup; None if the record does not exist any more."""
    found = [backup for backup, kept in _kept(folder) if kept == record]
    return found[-1] if found else None


def forget(folder: Path, record: WrapRecord) -> None:
    """Remove a record and its backup, if they exist.

    Raises:
        McpwrapError: one cannot be removed.
    """
    if backup := backup_of(folder, record):
        _remove(_record_of(backup))  # first: without it the backup is only a file
        _remove(backup)


def forget_but_backup(folder: Path, record: WrapRecord) -> None:
    """Remove a record, and leave its backup to the person: part of its content is nowhere else.

    Raises:
        McpwrapError: it cannot be removed.
    """
    if backup := backup_of(folder, record):
        _remove(_record_of(backup))


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        problem = f"cannot be removed: {error.strerror}"
        raise McpwrapError(
            problem, where=str(path), fix="remove it by hand", code="E-WRAP-RECORD-REMOVE"
        ) from error


def _made(folder: Path) -> Path:
    """Make the folder, if it does not exist, and close it to all other accounts."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def _with_backup(folder: Path, record: WrapRecord) -> Path:
    """Write the original bytes, with a higher number than all existing files have."""
    name = _UNUSUAL.sub("_", record.path.name)[-_MAX_NAME_CHARS:]
    while True:
        numbers = [int(found[1]) for path in folder.iterdir() if (found := _NAME.match(path.name))]
        backup = folder / f"backup-{max(numbers, default=0) + 1:04}-{name}"
        try:
            fd = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:  # by another `wrap`, at the same time
            continue
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(record.before)
                file.flush()
                os.fsync(fd)
        except OSError:
            backup.unlink()
            raise
        return backup


def _text(record: WrapRecord) -> str:
    written = _Written(
        path=str(record.path),
        agent=record.agent,
        entries=record.entries,
        before_sha256=sha256(record.before).hexdigest(),
        after_sha256=record.after_sha256,
        hub=record.hub,
        run_program=record.run_program,
    )
    return msgspec.json.format(msgspec.json.encode(written), indent=1).decode() + "\n"


def _record_of(backup: Path) -> Path:
    return backup.with_name(f"record-{backup.name.removeprefix('backup-')}.json")


def _kept(folder: Path) -> Iterator[tuple[Path, WrapRecord]]:
    """Yield each backup with its record, the oldest first."""
    paths = folder.glob("record-*.json")
    numbered = [(int(found[1]), path) for path in paths if (found := _NAME.match(path.name))]
    for _, path in sorted(numbered):
        name = path.name.removeprefix("record-").removesuffix(".json")
        backup = path.with_name(f"backup-{name}")
        yield backup, _read(path, backup)


def _read(path: Path, backup: Path) -> WrapRecord:
    try:
        written = msgspec.json.decode(_bytes(path), type=_Written)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise _damaged(path, f"is not a record: {error}") from error
    if written.agent not in BY_ID or not Path(written.path).is_absolute():
        raise _damaged(path, "is not a record of this version")
    before = _bytes(backup)
    if sha256(before).hexdigest() != written.before_sha256:
        raise _damaged(backup, "is not the backup that `wrap` wrote")
    return WrapRecord(
        path=Path(written.path),
        agent=written.agent,
        entries=written.entries,
        before=before,
        after_sha256=written.after_sha256,
        hub=written.hub,
        run_program=written.run_program,
    )


def _bytes(path: Path) -> bytes:
    content = read(path, os.geteuid(), within=None, max_bytes=MAX_BYTES)
    if content is None:
        raise _damaged(path, "does not exist any more")
    if isinstance(content, UnreadableFile):
        raise _damaged(path, content.why)
    return content


def _damaged(path: Path, why: str) -> McpwrapError:
    return McpwrapError(
        f"{why}; nothing was changed",
        where=str(path),
        fix=f"restore it from a copy, or move what is left of it out of {path.parent}",
        code="E-WRAP-RECORD-DAMAGED",
    )


def _not_saved(folder: Path, why: str, fix: str, *, code: str) -> McpwrapError:
    return McpwrapError(
        f"a backup cannot be written: {why}; nothing was changed",
        where=str(folder),
        fix=fix,
        code=code,
    )
