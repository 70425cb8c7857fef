"""Reader of log files that other accounts write: tail, whole file, following across rotation."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from pathlib import Path

from mcpwrap.errors import UsageError

TAIL_BYTES = 16 * 1024 * 1024  # of each log, from its end
_CHUNK_BYTES = 32 * 1024 * 1024  # longer than any line of mcpwrap, so that no file fills the memory
# Longest line of a followed log. Each record is shorter: its params have 64 KiB at most.
_LINE_BYTES = 1024 * 1024
_SKIPS = 64  # parts of _LINE_BYTES to skip in one call: no hole delays the other logs
_FIX = "find out which program put it there, and remove it"
MAY_READ = "use sudo, or add your account to the group adm: `sudo usermod -aG adm $USER`"


def tail(path: Path) -> Iterator[bytes]:
    """Yield the last lines of a log, if it exists; the first of them may be cut.

    Raises:
        UsageError: it is not a plain file, or the caller may not read it.
    """
    file = opened(path)
    if file is None:
        return
    with file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        yield from file


def whole(path: Path, most_bytes: int) -> Iterator[bytes] | None:
    """Return the lines of a log from its beginning, if it exists; the last may be cut.

    At most `most_bytes` are read.

    Raises:
        UsageError: it is not a plain file, or the caller may not read it.
    """
    file = opened(path)
    return None if file is None else _lines(file, most_bytes)


def _lines(file: BufferedReader, left_bytes: int) -> Iterator[bytes]:
    with file:
        while line := file.readline(min(_CHUNK_BYTES, left_bytes)):
            left_bytes -= len(line)
            yield line


class LogFollower:
    """Follower of several log files: returns the lines that are written from now on."""

    def __init__(self, find: Callable[[], Iterable[Path]]) -> None:
        """`find` returns the paths. It is called each time, because files may be added.

        Raises:
            UsageError: one is not a plain file, or the caller may not read it.
        """
        self._find = find
        self._open: dict[Path, BufferedReader] = {}
        for path in find():
            if file := opened(path):
                file.seek(0, os.SEEK_END)
                self._open[path] = file

    def close(self) -> None:
        """Close all files."""
        for file in self._open.values():
            file.close()

    def lines(self) -> Iterator[tuple[Path, bytes]]:
        """Yield the lines since the last call, each with its log.

        Raises:
            UsageError: one is not a plain file, or the caller may not read it.
        """
        for path in self._find():
            # Opened first: a writer that has a new file does not write to the old one any more.
            new = opened(path)
            old = self._open.get(path)
            if old is not None:
                yield from ((path, line) for line in whole_lines(old))
            if new is None or (old is not None and _is_same(old, new)):
                if new is not None:
                    new.close()
                continue
            if old is not None:
                old.close()
            self._open[path] = new
            yield from ((path, line) for line in whole_lines(new))


def whole_lines(file: BufferedReader) -> Iterator[bytes]:
    """Yield the complete lines; half a line is left until the rest of it is written.

    A line that is longer than any of mcpwrap's is skipped. If its end is not reached, the position
    stays inside the line, and the next call skips further.
    """
    if _is_in_a_line(file) and not _skip(file):
        return
    while line := file.readline(_LINE_BYTES):
        if line.endswith(b"\n"):
            yield line
        elif len(line) < _LINE_BYTES:
            file.seek(-len(line), os.SEEK_CUR)
            return
        elif not _skip(file):
            return


def _is_in_a_line(file: BufferedReader) -> bool:
    at = file.tell()
    file.seek(max(0, at - 1))
    before = file.read(min(1, at))
    file.seek(at)
    return before not in {b"", b"\n"}


def _skip(file: BufferedReader) -> bool:
    """Move the position behind the end of this line; return whether the end was reached."""
    return any(file.readline(_LINE_BYTES).endswith(b"\n") for _ in range(_SKIPS))


def _is_same(one: BufferedReader, other: BufferedReader) -> bool:
    return os.path.sameopenfile(one.fileno(), other.fileno())


def opened(path: Path) -> BufferedReader | None:
    """Open a log; None if it does not exist. In another account's folder it could be a pipe.

    Raises:
        UsageError: it is not a plain file, or the caller may not read it.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.fdopen(os.open(path, flags), "rb")
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise UsageError(
            "cannot be read: Permission denied",
            where=str(path),
            fix=MAY_READ,
            code="E-LOG-NOT-READABLE",
        ) from error
    except OSError as error:
        raise UsageError(
            f"cannot be opened: {error.strerror}",
            where=str(path),
            fix=_FIX,
            code="E-LOG-NOT-PLAIN",
        ) from error
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise UsageError("is not a plain file", where=str(path), fix=_FIX, code="E-LOG-NOT-PLAIN")
