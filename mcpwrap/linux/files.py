"""Reading and replacing root's files."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcpwrap.errors import UsageError


def replace(path: str, text: str, *, mode: int = 0o644, gid: int = -1) -> None:
    """Put `text` at `path`, whole or not at all, also if the power goes. Source: rename(2).

    `gid` is the group that it belongs to; -1 is that of the process.
    """
    target = Path(path)
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    temporary = _temporary(target)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        if gid != -1:  # of a wrapper's processes nobody may call it
            os.fchown(fd, -1, gid)  # before the mode: it is for this group
        os.fchmod(fd, mode)
        file.write(text)
        file.flush()
        os.fsync(fd)
    temporary.rename(target)
    _sync_folder(target.parent)


def replace_link(path: str, target: str) -> None:
    """Make `path` a symbolic link to `target`, whatever it was."""
    link = Path(path)
    link.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    temporary = _temporary(link)
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.rename(link)


def remove(path: str) -> None:
    """Remove a file or link if it is there, and a drop-in folder that it leaves empty."""
    file = Path(path)
    file.unlink(missing_ok=True)
    folder = file.parent
    if (
        "@" in folder.name
        and folder.suffix == ".d"
        and folder.is_dir()
        and not any(folder.iterdir())
    ):
        folder.rmdir()


def read_roots_own(path: str, *, max_bytes: int) -> bytes:
    """Return a file that only root could have written, checked on the open file itself.

    Returns at most one byte more than `max_bytes`, so that the caller sees that it is too long.

    Raises:
        FileNotFoundError: there is none.
        UsageError: it is a link, or others can write to it.
    """
    with _opened(path, _FIX) as fd:
        info = os.fstat(fd)
        if info.st_uid != 0 or info.st_mode & 0o022:
            raise UsageError("others than root can write to it", where=path, fix=_FIX)
        return _read(fd, max_bytes)


def read_anybodys(path: str, *, max_bytes: int) -> bytes:
    """Return a file that may be anybody's, and may be changed while it is read.

    Returns at most one byte more than `max_bytes`.

    Raises:
        UsageError: there is none, or it is a link or no plain file.
    """
    try:
        with _opened(path, _NAME_ANOTHER) as fd:
            return _read(fd, max_bytes)
    except FileNotFoundError as error:
        raise UsageError(
            "no such file; nothing was changed", where=ascii(path), fix=_NAME_ANOTHER
        ) from error


@contextmanager
def _opened(path: str, fix: str) -> Iterator[int]:
    """Open a plain file. What is no file is not waited for, and becomes no terminal of ours."""
    where = path if path.isprintable() else ascii(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise
        problem = f"cannot be opened: {error.strerror}; nothing was changed"
        raise UsageError(problem, where=where, fix=fix) from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise UsageError("is not a plain file; nothing was changed", where=where, fix=fix)
        yield fd
    finally:
        os.close(fd)


def _read(fd: int, max_bytes: int) -> bytes:
    with os.fdopen(fd, "rb", closefd=False) as file:
        return file.read(max_bytes + 1)


_FIX = "make it a plain file: `chown root:root`, `chmod 644`"
_NAME_ANOTHER = "name a plain file that root can read"


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
