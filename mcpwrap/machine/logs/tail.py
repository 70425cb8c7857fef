"""Reader of log files that other accounts write: tail, whole file, following across rotation."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from pathlib import Path

from mcpwrap.errors import UsageError

TAIL_BYTES = 16 * 1024 * 1024  # of each log, from its end
_CHUNK_BYTES = 32 * 1024 * 1024  # longer than any line that we write: no file fills the memory
# Of a log that is followed. No record is as long: the params in it are of 64 KiB at most.
_LINE_BYTES = 1024 * 1024
_SKIPS = 64  # times that at most, at one look: a hole of any size keeps nobody from the other logs
_FIX = "find out who put it there, and remove it"
MAY_READ = "use sudo, or have your account added to the group adm: `sudo adduser $USER adm`"


def tail(path: Path) -> Iterator[bytes]:
    """Yield the last lines of a log, if there is one; the first of them may be cut.

    Raises:
        UsageError: it is no plain file.
    """
    file = opened(path)
    if file is None:
        return
    with file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        yield from file


def whole(path: Path, most_bytes: int) -> Iterator[bytes] | None:
    """Return the lines of a log from its beginning, if there is one; the last may be cut.

    What is beyond so many bytes is not read.

    Raises:
        UsageError: it is no plain file.
    """
    file = opened(path)
    return None if file is None else _lines(file, most_bytes)


def _lines(file: BufferedReader, left_bytes: int) -> Iterator[bytes]:
    with file:
        while line := file.readline(min(_CHUNK_BYTES, left_bytes)):
            left_bytes -= len(line)
            yield line


class LogFollower:
    """Follower of several log files, from now on."""

    def __init__(self, find: Callable[[], Iterable[Path]]) -> None:
        """`find` returns which there are; it is asked each time, as there may come to be more.

        Raises:
            UsageError: one is no plain file.
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
        """Yield what has come since the last time, each line with its log.

        Raises:
            UsageError: one is no plain file.
        """
        for path in self._find():
            # Looked for first: whoever has a new file writes to the old one no more.
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
    """Yield what is there; half a line is left until the rest of it is written.

    A line that no writer of ours makes so long is passed over. Where that is not done at the end,
    the file stands in the midst of a line, and the next look goes on with it.
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
    """Go on behind the end of this line; say whether there was one."""
    return any(file.readline(_LINE_BYTES).endswith(b"\n") for _ in range(_SKIPS))


def _is_same(one: BufferedReader, other: BufferedReader) -> bool:
    return os.path.sameopenfile(one.fileno(), other.fileno())


def opened(path: Path) -> BufferedReader | None:
    """Open a log, if there is one. In another account's folder it could be a pipe, too.

    Raises:
        UsageError: it is no plain file, or not for the caller.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.fdopen(os.open(path, flags), "rb")
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise UsageError("may not be read by you", where=str(path), fix=MAY_READ) from error
    except OSError as error:
        raise UsageError(str(error.strerror), where=str(path), fix=_FIX) from error
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise UsageError("is not a plain file", where=str(path), fix=_FIX)
