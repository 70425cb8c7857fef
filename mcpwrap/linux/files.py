"""Reading and replacing root's files."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.errors import HalfDoneError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file as it is to be. `gid` is its group; -1 is that of the process."""

    path: str
    text: str
    mode: int = 0o644
    gid: int = -1


def temporary(path: str) -> str:
    """Return the name under which a file is written before it is renamed to `path`."""
    target = Path(path)
    return str(target.with_name(f".{target.name}.new"))


def replace(path: str, text: str, *, mode: int = 0o644, gid: int = -1) -> None:
    """Put `text` at `path`, whole or not at all, also if the power goes. Source: rename(2).

    Raises:
        OSError: it cannot be written; its `filename` is `path`, and nothing was changed.
    """
    replace_all([NewFile(path=path, text=text, mode=mode, gid=gid)])


def replace_all(wanted: Sequence[NewFile]) -> None:
    """Replace these files, in this order, each whole; none, if one of them cannot be written.

    All are on the disk under temporary names before the first is renamed: where a disk is full, it
    ends there.

    Raises:
        HalfDoneError: some were replaced.
        OSError: none was. `filename` is the path of the file concerned; no temporary file is left.
    """
    begun: list[Path] = []
    try:
        for each in wanted:
            with _naming(each.path):
                _write(each, begun)
        with _naming(wanted[0].path):
            begun[0].rename(wanted[0].path)
        _complete(wanted, begun)
    except BaseException:
        for new in begun:
            with suppress(OSError):  # it has been renamed
                new.unlink()
        raise


def _complete(wanted: Sequence[NewFile], begun: Sequence[Path]) -> None:
    """Rename the others; the first has been. Each is on the disk before the next is changed."""
    try:
        for each, new in zip(wanted, begun, strict=True):
            with _naming(each.path):
                if each is not wanted[0]:
                    new.rename(each.path)
                _sync_folder(Path(each.path).parent)
    except OSError as error:
        raise HalfDoneError(error.errno, error.strerror, error.filename) from error


def _write(wanted: NewFile, begun: list[Path]) -> None:
    new = Path(temporary(wanted.path))
    new.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, wanted.mode)
    begun.append(new)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        if wanted.gid != -1:  # of a wrapper's processes nobody may call it
            os.fchown(fd, -1, wanted.gid)  # before the mode: it is for this group
        os.fchmod(fd, wanted.mode)
        file.write(wanted.text)
        file.flush()
        os.fsync(fd)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Have an error of the block name this file: write(2) names none, and nobody knows ours."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def replace_link(path: str, target: str) -> None:
    """Make `path` a symbolic link to `target`, whatever it was."""
    link = Path(path)
    link.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    new = Path(temporary(path))
    new.unlink(missing_ok=True)
    with _naming(path):
        try:
            new.symlink_to(target)
            new.rename(link)
        except OSError:
            new.unlink(missing_ok=True)
            raise


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


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
