"""Reading of root's files, with checks of owner and mode, and their atomic replacement."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.errors import PartialWriteError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """File to be written. `gid` is its group; -1 is that of the process."""

    path: str
    text: str
    mode: int = 0o644
    gid: int = -1


def temporary(path: str) -> str:
    """Return the name under which a file is written before it is renamed to `path`."""
    target = Path(path)
    return str(target.with_name(f".{target.name}.new"))


_MAX_BYTES = 16 * 1024 * 1024  # of a file that root itself writes
_WRITTEN, _USED = 0o022, 0o077  # the bits of a mode that let others do that
_MAX_LINKS = 40  # as in the kernel: path_resolution(7)


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
        PartialWriteError: some were replaced.
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
        raise PartialWriteError(error.errno, error.strerror, error.filename) from error


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


def read_roots_own(path: str, *, max_bytes: int = _MAX_BYTES) -> bytes:
    """Return a file that only root could have written, checked on the open file itself.

    Returns at most one byte more than `max_bytes`, so that the caller sees that it is too long.

    Raises:
        FileNotFoundError: there is none.
        UsageError: it is a link, or others can write to it or replace it.
    """
    return _read_checked(path, max_bytes, _WRITTEN)


def read_of_root(path: str, *, max_bytes: int = _MAX_BYTES) -> bytes:
    """Return a file that is root's, in a folder that may not be root's alone (/usr/local: staff).

    Raises:
        FileNotFoundError: there is none.
        UsageError: it is a link, or others can write to it.
    """
    with _opened(path, _FIX) as fd:
        _expect_file(path, os.fstat(fd), _WRITTEN)
        return _read(fd, max_bytes)


def read_roots_secret(path: str, *, max_bytes: int = _MAX_BYTES) -> bytes:
    """Return a file that only root could have written or read. Otherwise as above."""
    return _read_checked(path, max_bytes, _USED)


def expect_roots_file(path: str) -> None:
    """Refuse a file that others than root could have written, without opening it.

    Raises:
        FileNotFoundError: there is none.
        UsageError: with its mode and its owner.
    """
    expect_roots_folder(str(Path(path).parent))
    _expect_file(path, Path(path).lstat(), _WRITTEN)


def expect_roots_secret(path: str) -> None:
    """Refuse a file that others than root could have written or read. Otherwise as above."""
    expect_roots_folder(str(Path(path).parent))
    _expect_file(path, Path(path).lstat(), _USED)


def _read_checked(path: str, max_bytes: int, forbidden: int) -> bytes:
    expect_roots_folder(str(Path(path).parent))
    with _opened(path, _fix(forbidden)) as fd:
        _expect_file(path, os.fstat(fd), forbidden)
        return _read(fd, max_bytes)


def _expect_file(path: str, info: os.stat_result, forbidden: int) -> None:
    if not stat.S_ISREG(info.st_mode):
        problem = "is not a plain file; nothing was changed"
        raise UsageError(problem, where=path, fix=_fix(forbidden))
    if info.st_uid != 0 or info.st_mode & forbidden:
        verb = "write to" if forbidden == _WRITTEN else "use"
        problem = f"others than root can {verb} it ({_access(info)}); nothing was changed"
        raise UsageError(problem, where=path, fix=_fix(forbidden))


def _fix(forbidden: int) -> str:
    return _FIX if forbidden == _WRITTEN else _FIX_PRIVATE


def expect_roots_folder(path: str) -> None:
    """Refuse a folder in which others than root can make, replace or remove a name.

    That is judged of each folder above it too, and of each to which a link leads. Under a sticky
    one (/tmp) what is root's stays root's, so only the last may not be one. The group's bits of a
    file with an access control list are its mask, so they show what the list grants (acl(5)).

    Raises:
        FileNotFoundError: it is not there.
        UsageError: with which, its mode and its owner.
    """
    at, todo, links = Path("/"), list(Path(path).parts[1:]), 0
    _expect_roots(at, is_last=not todo)
    while todo:
        name, *todo = todo
        at = at.parent if name == ".." else at / name
        if not at.is_symlink():
            _expect_roots(at, is_last=not todo)
            continue
        links += 1
        if links > _MAX_LINKS or at.lstat().st_uid != 0:
            raise UsageError("is a link that is not root's, or leads on", where=str(at), fix=_FIX)
        target = at.readlink()
        at = Path("/") if target.is_absolute() else at.parent
        todo = [*target.parts[target.is_absolute() :], *todo]


def _expect_roots(folder: Path, *, is_last: bool) -> None:
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise UsageError("is not a folder", where=str(folder), fix="make it a folder of root's")
    is_writable = info.st_mode & 0o022 and (is_last or not info.st_mode & stat.S_ISVTX)
    if info.st_uid != 0 or is_writable:
        problem = f"others than root can change what is in it ({_access(info)})"
        fix = f"look at what is in it; then `chown root {folder}` and `chmod go-w {folder}`"
        raise UsageError(f"{problem}; nothing was changed", where=str(folder), fix=fix)


def _access(info: os.stat_result) -> str:
    owner = "" if info.st_uid == 0 else f", owner {info.st_uid}"
    return f"mode {stat.S_IMODE(info.st_mode):04o}{owner}"


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
_FIX_PRIVATE = "if it was read, replace what is in it; then `chown root:root`, `chmod 600`"
_NAME_ANOTHER = "name a plain file that root can read"


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
