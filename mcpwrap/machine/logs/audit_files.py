"""Reader of audit files in folders of another account: list, read, merge by time, follow."""

import heapq
import os
import re
import resource
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count, takewhile
from pathlib import Path

from mcpwrap.core.audit.reader import UNREADABLE
from mcpwrap.core.audit.records import (
    MASTER,
    MAX_FILE_BYTES,
    MAX_MASTER_BYTES,
    MAX_NUMBER_DIGITS,
    MAX_PART_DIGITS,
    ApprovalAnswered,
    ApprovalRuleChanged,
    PinsChanged,
    Record,
    decode_event,
    decode_record,
)
from mcpwrap.core.audit.verify import EpochFolder
from mcpwrap.core.audit.verify_session import UnreadableAuditFile
from mcpwrap.errors import UsageError
from mcpwrap.machine.logs import tail

Source = Callable[[], Iterator[Record]]
_EPOCH = re.compile(r"[0-9]{8}")
_SESSION = re.compile(rf"[0-9]{{1,{MAX_NUMBER_DIGITS}}}-[0-9]{{1,{MAX_PART_DIGITS}}}\.jsonl")
# By how much a file's time may be behind that of its last record: the kernel's clock is coarse.
_BEHIND_S = 5.0
_ShownEvent = ApprovalAnswered | ApprovalRuleChanged | PinsChanged
_SHOWN = (
    b'"what":"answered"',
    b'"what":"rule"',
    b'"what":"pins"',
)  # parts of lines of the master chain


@dataclass(frozen=True, slots=True)
class SessionFile:
    """File of a session's records: path, size and modification time."""

    path: Path
    size: int
    changed_at: float


def session_files(folder: Path, epochs: int | None = None) -> list[SessionFile]:
    """Return all session files, oldest epoch first; or those of the last `epochs` epochs.

    Raises:
        UsageError: there is no audit, or the caller may not read it.
    """
    names = sorted(
        name for name in _names(folder) if _EPOCH.fullmatch(name) and _is_folder(folder / name)
    )
    if not names and not folder.exists():
        raise UsageError(
            "there is no audit yet",
            where=str(folder),
            fix="open a session, with which it begins",
            code="E-AUDIT-NO-RECORDS",
        )
    found = []
    for epoch in names if epochs is None else names[-epochs:]:
        for name in sorted(filter(_SESSION.fullmatch, _names(folder / epoch))):
            path = folder / epoch / name
            if (at := _plain(path)) is not None:
                found.append(SessionFile(path, at.st_size, at.st_mtime))
    return found


def since(files: Iterable[SessionFile], at: float) -> list[SessionFile]:
    """Return the files that were written to since `at`."""
    return [file for file in files if file.changed_at >= at - _BEHIND_S]


def records(path: Path) -> Iterator[Record]:
    """Yield the records of a file. Lines without a record, such as an unfinished one, are left out.

    The gate writes nothing beyond the size of a part, so the rest of a longer file is not read.
    """
    return _decoded(tail.whole(path, MAX_FILE_BYTES) or ())


def shown_events(folder: Path, at: float) -> Iterator[_ShownEvent]:
    """Yield the answers of approvers, and the changes of approval rules and pins, since `at`."""
    for epoch in sorted(filter(_EPOCH.fullmatch, _names(folder))):
        for line in tail.whole(folder / epoch / MASTER, MAX_MASTER_BYTES) or ():
            if any(part in line for part in _SHOWN):
                with suppress(*UNREADABLE):
                    event = decode_event(line)
                    if isinstance(event, PinsChanged) and event.before == event.after:
                        continue  # a start of the gate
                    if isinstance(event, _ShownEvent) and event.at >= at:
                        yield event


def in_order(sources: Iterable[Source]) -> Iterator[Record]:
    """Yield all records by time. Only the files of overlapping sessions are read at once."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    starts = []
    for number, source in enumerate(sources):
        if first := next(source(), None):
            starts.append((first.at, number, source))
    heap: list[tuple[float, int, Record, Iterator[Record]]] = []
    for at, number, source in sorted(starts, key=lambda start: start[:2]):
        while heap and heap[0][0] <= at:
            yield _next_record(heap)
        stream = source()
        if first := next(stream, None):
            heapq.heappush(heap, (first.at, number, first, stream))
    while heap:
        yield _next_record(heap)


def last(
    files: Iterable[SessionFile],
    number: int,
    admits: Callable[[Record], bool],
    others: Iterable[Record] = (),
) -> list[Record]:
    """Return the last `number` of the `others` and the records that `admits` accepts, oldest first.

    A session's process writes the times of its records; an attacker who controls it can write any.
    So a record counts as no later than the last write to its file, and cannot hide other records.
    """
    serials = count()
    heap = [(record.at, next(serials), record) for record in others]
    heap = heapq.nlargest(number, heap)
    heapq.heapify(heap)
    for file in sorted(files, key=lambda file: file.changed_at, reverse=True):
        if len(heap) == number and file.changed_at < heap[0][0] - _BEHIND_S:
            break
        for record in filter(admits, records(file.path)):
            at = min(record.at, file.changed_at + _BEHIND_S)
            if len(heap) < number:
                heapq.heappush(heap, (at, next(serials), record))
            elif at >= heap[0][0]:
                heapq.heapreplace(heap, (at, next(serials), record))
    return [record for _, _, record in sorted(heap, key=lambda entry: entry[:2])]


class RecordFollower:
    """Follower of new audit records. It holds no file open: there may be very many."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read_bytes = {file.path: file.size for file in session_files(folder, epochs=2)}

    def records(self) -> list[Record]:
        """Return the records since the last call, oldest first."""
        found: list[Record] = []
        for file in session_files(self._folder, epochs=2):
            if min(file.size, MAX_FILE_BYTES) > self._read_bytes.get(file.path, 0):
                found += self._new(file.path)
        return sorted(found, key=lambda record: record.at)

    def _new(self, path: Path) -> Iterator[Record]:
        log = tail.opened(path)
        if log is None:
            return
        with log:
            log.seek(self._read_bytes.get(path, 0))
            lines = tail.whole_lines(log)
            yield from _decoded(takewhile(lambda _: log.tell() <= MAX_FILE_BYTES, lines))
            self._read_bytes[path] = log.tell()


def to_check(folder: Path) -> dict[str, EpochFolder | None]:
    """Return the input of `core.audit.verify.check`: the folders of the epochs, by name."""
    found: dict[str, EpochFolder | None] = {}
    for name in _names(folder):
        path = folder / name
        read = partial(_lines, path)
        found[name] = EpochFolder(frozenset(_names(path)), read) if _is_folder(path) else None
    return found


def size_bytes(path: Path) -> int:
    """Return the size of a file; 0 if it is not a plain file, or does not exist."""
    at = _plain(path)
    return at.st_size if at else 0


def _lines(folder: Path, name: str) -> Iterator[bytes] | UnreadableAuditFile | None:
    path = folder / name
    try:
        at = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return UnreadableAuditFile(f"cannot be checked: {error.strerror}")
    if not stat.S_ISREG(at.st_mode):
        return None
    most_bytes = MAX_MASTER_BYTES if name == MASTER else MAX_FILE_BYTES
    if at.st_size > most_bytes:
        return UnreadableAuditFile(
            f"has {at.st_size} bytes, more than the gate writes; it is not read"
        )
    return tail.whole(path, most_bytes)


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except PermissionError as error:
        raise UsageError(
            "cannot be read: Permission denied",
            where=str(folder),
            fix=tail.MAY_READ,
            code="E-LOG-NOT-READABLE",
        ) from error
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_folder(path: Path) -> bool:
    at = _status(path)
    return at is not None and stat.S_ISDIR(at.st_mode)


def _plain(path: Path) -> os.stat_result | None:
    at = _status(path)
    return at if at is not None and stat.S_ISREG(at.st_mode) else None


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:  # also if the name is too long: the verification reports the file as missing
        return None


def _decoded(lines: Iterable[bytes]) -> Iterator[Record]:
    for line in lines:
        with suppress(*UNREADABLE):
            yield decode_record(line)


def _next_record(heap: list[tuple[float, int, Record, Iterator[Record]]]) -> Record:
    _, number, record, stream = heap[0]
    if following := next(stream, None):
        heapq.heapreplace(heap, (following.at, number, following, stream))
    else:
        heapq.heappop(heap)
    return record
