"""Reader of audit files, in folders of another account: list, read, merge by time, follow."""

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
_ANSWERED = b'"what":"answered"'


@dataclass(frozen=True, slots=True)
class SessionFile:
    """File of a session's records: path, size and modification time."""

    path: Path
    size: int
    changed_at: float


def session_files(folder: Path, epochs: int | None = None) -> list[SessionFile]:
    """Return those that there are, oldest epoch first; or those of the last so many epochs.

    Raises:
        UsageError: there is no audit, or it is not for the caller.
    """
    names = sorted(
        name for name in _names(folder) if _EPOCH.fullmatch(name) and _is_folder(folder / name)
    )
    if not names and not folder.exists():
        what = "there is no audit yet"
        raise UsageError(what, where=str(folder), fix="it begins with the first session")
    found = []
    for epoch in names if epochs is None else names[-epochs:]:
        for name in sorted(filter(_SESSION.fullmatch, _names(folder / epoch))):
            path = folder / epoch / name
            if (at := _plain(path)) is not None:
                found.append(SessionFile(path, at.st_size, at.st_mtime))
    return found


def since(files: Iterable[SessionFile], at: float) -> list[SessionFile]:
    """Return those that were written to since then."""
    return [file for file in files if file.changed_at >= at - _BEHIND_S]


def records(path: Path) -> Iterator[Record]:
    """Yield the records of a file; what is none, as a line that was begun, is left out.

    What is beyond the size of a part no gate wrote: it is not read.
    """
    return _decoded(tail.whole(path, MAX_FILE_BYTES) or ())


def answers(folder: Path, at: float) -> Iterator[ApprovalAnswered]:
    """Yield the answers of people since then to what waited for approval."""
    for epoch in sorted(filter(_EPOCH.fullmatch, _names(folder))):
        for line in tail.whole(folder / epoch / MASTER, MAX_MASTER_BYTES) or ():
            if _ANSWERED in line:
                with suppress(*UNREADABLE):
                    event = decode_event(line)
                    if isinstance(event, ApprovalAnswered) and event.at >= at:
                        yield event


def in_order(sources: Iterable[Source]) -> Iterator[Record]:
    """Yield all records by their times. What is read at a time are sessions of one time."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    starts = []
    for number, source in enumerate(sources):
        if first := next(source(), None):
            starts.append((first.at, number, source))
    heap: list[tuple[float, int, Record, Iterator[Record]]] = []
    for at, number, source in sorted(starts, key=lambda start: start[:2]):
        while heap and heap[0][0] <= at:
            yield _taken(heap)
        stream = source()
        if first := next(stream, None):
            heapq.heappush(heap, (first.at, number, first, stream))
    while heap:
        yield _taken(heap)


def last(
    files: Iterable[SessionFile],
    number: int,
    admits: Callable[[Record], bool],
    others: Iterable[Record] = (),
) -> list[Record]:
    """Return the last so many records that are admitted, or are among the others, oldest first.

    A session writes the times of its records, and one that was taken over writes any. None counts
    as later than when its file was last written to, lest they hide what others have recorded.
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
        """Return what has come since the last time, oldest first."""
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
    """Return what `core.audit.verify.check` reads."""
    found: dict[str, EpochFolder | None] = {}
    for name in _names(folder):
        path = folder / name
        read = partial(_lines, path)
        found[name] = EpochFolder(frozenset(_names(path)), read) if _is_folder(path) else None
    return found


def size_bytes(path: Path) -> int:
    """Return how large a file is; 0 if it is no plain file, or not there."""
    at = _plain(path)
    return at.st_size if at else 0


def _lines(folder: Path, name: str) -> Iterator[bytes] | UnreadableAuditFile | None:
    path = folder / name
    try:
        at = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return UnreadableAuditFile(f"cannot be looked at: {error.strerror}")
    if not stat.S_ISREG(at.st_mode):
        return None
    most_bytes = MAX_MASTER_BYTES if name == MASTER else MAX_FILE_BYTES
    if at.st_size > most_bytes:
        return UnreadableAuditFile(
            f"has {at.st_size} bytes, which is more than the gate writes; it is not read"
        )
    return tail.whole(path, most_bytes)


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except PermissionError as error:
        what = "may not be read by you"
        raise UsageError(what, where=str(folder), fix=tail.MAY_READ) from error
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
    except OSError:  # also of a name that is too long: whoever checks it all finds it missing
        return None


def _decoded(lines: Iterable[bytes]) -> Iterator[Record]:
    for line in lines:
        with suppress(*UNREADABLE):
            yield decode_record(line)


def _taken(heap: list[tuple[float, int, Record, Iterator[Record]]]) -> Record:
    _, number, record, stream = heap[0]
    if following := next(stream, None):
        heapq.heapreplace(heap, (following.at, number, following, stream))
    else:
        heapq.heappop(heap)
    return record
