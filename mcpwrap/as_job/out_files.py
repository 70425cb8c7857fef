"""Files that a run has left: those of /out, and the value of its last expression.

They are read when no process of the run is alive, in the view of its slot. The run has made them,
so a link, a FIFO, a device or a socket may be among them: none of these is followed, opened for
good, or waited for. Folders are not read.
"""

import os
import stat
from collections.abc import Iterator

from mcpwrap.core.wire.execution import job_frames

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class FileFromRun:
    """Regular file of /out. `content` is absent (None) if the file is too long."""

    __slots__ = ("content", "name", "size")

    def __init__(self, name: str, size: int, content: bytes | None) -> None:
        self.name = name
        self.size = size
        self.content = content


def collect(folder: str) -> Iterator[FileFromRun]:
    """Yield the regular files of this folder by name, up to the limits of `job_frames`."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if job_frames.is_file_name(entry.name))
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    found, left_bytes = 0, job_frames.MAX_OUT_BYTES
    try:
        for name in names:
            file = _read(name, folder_fd, min(job_frames.MAX_FILE_BYTES, left_bytes))
            if file is None:
                continue
            yield file
            found += 1
            left_bytes -= len(file.content or b"")
            if found == job_frames.MAX_FILES_OUT:
                return
    finally:
        os.close(folder_fd)


def count_entries(folder: str) -> int:
    """Return the number of files, folders and all else in this folder."""
    return len(os.listdir(folder))


def read_value(path: str) -> bytes | None:
    """Return the value of the last expression, in UTF-8 of at most `MAX_VALUE_BYTES`."""
    file = _read(path, None, job_frames.MAX_VALUE_BYTES)
    return file.content if file else None


def _read(path: str, folder_fd: int | None, max_bytes: int) -> FileFromRun | None:
    """Return a regular file that this account may read; None if it is anything else."""
    try:
        fd = os.open(path, _FLAGS, dir_fd=folder_fd)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > max_bytes:
            return FileFromRun(path, status.st_size, None)
        with open(fd, "rb", closefd=False) as opened:
            content = opened.read()
        return FileFromRun(path, len(content), content)
    finally:
        os.close(fd)
