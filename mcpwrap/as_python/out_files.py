"""Files that runs left in /out, kept for `resources/read` and for `files` of later calls.

All sessions of a server share the folder, so a URI is a capability (core/execution/run_uris). Runs
wrote names and contents: each name is one path component, and no link is followed.
"""

import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.core.execution import run_uris
from mcpwrap.core.execution.run_uris import RunUri
from mcpwrap.core.wire.execution import job_frames

MAX_BYTES = 64 * 1024**2  # of all files together
_BLOCK_BYTES = 4096  # least room that a file takes
_UNFINISHED = ".new"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class _KeptRun:
    path: Path
    used_s: float  # time of the last use
    size: int


class OutFiles:
    """Folder with the files of the last runs, of bounded size; the least recently used go first."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def keep(self, files: Sequence[tuple[str, bytes]]) -> dict[str, RunUri]:
        """Keep the files of one run, all or none; return their URIs by name.

        Files over the bound, and names that cannot be in a URI, are left out.

        Raises:
            OSError: they cannot be written, as when the disk is full; nothing is kept.
        """
        kept = [(name, content) for name, content in files if run_uris.can_name(name)]
        size = sum(_room(len(content)) for _, content in kept)
        if not kept or size > self._max_bytes:
            return {}
        run_id = secrets.token_hex(run_uris.ID_BYTES)
        with self._locked():
            self._evict(self._max_bytes - size)
            new = self._folder / f"{run_id}{_UNFINISHED}"
            try:
                new.mkdir(mode=0o700)
                for name, content in kept:
                    _write(new / name, content)
                new.rename(self._folder / run_id)
            except OSError:
                shutil.rmtree(new, ignore_errors=True)
                raise
        return {name: RunUri(run_id, name) for name, _ in kept}

    def read(self, uri: RunUri) -> bytes | None:
        """Return the content of a file; None if there is none, or none any more."""
        with suppress(OSError):
            folder_fd = os.open(self._folder / uri.run_id, _FOLDER)
            try:
                os.utime(folder_fd)  # the time of its last use
                return _read(os.open(uri.name, _FILE, dir_fd=folder_fd))
            finally:
                os.close(folder_fd)
        return None

    def _evict(self, max_bytes: int) -> None:
        """Remove the least recently used runs until the rest is within the bound."""
        runs = sorted(self._runs(), key=lambda run: run.used_s)
        size = sum(run.size for run in runs)
        for run in runs:
            # Under the lock: an unfinished folder is of a session that was killed.
            if size > max_bytes or run.path.suffix == _UNFINISHED:
                shutil.rmtree(run.path, ignore_errors=True)
                size -= run.size

    def _runs(self) -> Iterator[_KeptRun]:
        for entry in os.scandir(self._folder):
            if entry.is_dir(follow_symlinks=False):
                with os.scandir(entry) as files:
                    size = sum(_room(file.stat(follow_symlinks=False).st_size) for file in files)
                used_s = entry.stat(follow_symlinks=False).st_mtime
                yield _KeptRun(Path(entry.path), used_s, size)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the folder, which sessions of the server share (flock(2))."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self._folder, _FOLDER)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def _room(size: int) -> int:
    return -(-max(size, 1) // _BLOCK_BYTES) * _BLOCK_BYTES


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, _NEW_FILE, 0o600), "wb") as file:
        file.write(content)


def _read(fd: int) -> bytes | None:
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        content = file.read(job_frames.MAX_FILE_BYTES + 1)
    return content if len(content) <= job_frames.MAX_FILE_BYTES else None
