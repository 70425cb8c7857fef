"""Root's files: reading with checks of owner and mode, and atomic replacement."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.errors import PartialWriteError, UsageError
from mcpwrap.linux.folder_sync import sync_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """File to be written. `gid` is its group; -1 is the process's group."""

    path: str
    text: str
    mode: int = 0o644
    gid: int = -1


def temporary(path: str) -> str:
    """Return the name under which a file is written before it is renamed to `path`."""
    target = Path(path)
    return str(target.with_name(f".{target.name}.new"))


_MAX_BYTES = 16 * 1024 * 1024  # of a file that root itself writes
_WRITTEN, _USED = 0o022, 0o077  # mode bits by which others can write a file, or use it at all
_MAX_LINKS = 40  # as in the kernel: path_resolution(7)


def replace(path: str, text: str, *, mode: int = 0o644, gid: int = -1) -> None:
    """Write `text` to `path`, whole or not at all, even if the power fails. Source: rename(2).

    Raises:
        OSError: it cannot be written; its `filename` is `path`, and nothing was changed.
    """
    replace_all([NewFile(path=path, text=text, mode=mode, gid=gid)])


def replace_all(wanted: Sequence[NewFile]) -> None:
    """Replace these files, in this order, each whole; none, if one of them cannot be written.

    All are on the disk under temporary names before the first is renamed, so a full disk is
    noticed before any file is replaced.

    Raises:
        PartialWriteError: some files were replaced.
        OSError: no file was replaced. `filename` is the path of the file concerned; no temporary
            file is left.
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
    """Rename all but the first, which was renamed. Each is on the disk before the next changes."""
    try:
        for each, new in zip(wanted, begun, strict=True):
            with _naming(each.path):
                if each is not wanted[0]:
                    new.rename(each.path)
                sync_folder(Path(each.path).parent)
    except OSError as error:
        raise PartialWriteError(error.errno, error.strerror, error.filename) from error


def _write(wanted: NewFile, begun: list[Path]) -> None:
    new = Path(temporary(wanted.path))
    new.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, wanted.mode)
    begun.append(new)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        if wanted.gid != -1:  # a wrapper's seccomp filter refuses fchown(2) to all its processes
            os.fchown(fd, -1, wanted.gid)  # before the mode: it is for this group
        os.fchmod(fd, wanted.mode)
        file.write(wanted.text)
        file.flush()
        os.fsync(fd)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Name this file in an OSError of the block: write(2) names none, and ours is temporary."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def replace_link(path: str, target: str) -> None:
    """Make `path` a symbolic link to `target`; what was there is replaced."""
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
    """Remove a file or link if it exists, and a drop-in folder that becomes empty."""
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
    """Return the content of a file that only root can write; the open file itself is checked.

    Returns at most one byte more than `max_bytes`, by which the caller notices a longer file.

    Raises:
        FileNotFoundError: it does not exist.
        UsageError: it is a link, or another account can write to it or replace it.
    """
    return _read_checked(path, max_bytes, _WRITTEN)


def read_of_root(path: str, *, max_bytes: int = _MAX_BYTES) -> bytes:
    """Return the content of root's file in a folder that others may write (/usr/local: staff).

    Raises:
        FileNotFoundError: it does not exist.
        UsageError: it is a link, or another account can write to it.
    """
    with _opened(path, _FIX) as fd:
        _expect_file(path, os.fstat(fd), _WRITTEN)
        return _read(fd, max_bytes)


def read_roots_secret(path: str, *, max_bytes: int = _MAX_BYTES) -> bytes:
    """Return the content of a file that only root can write or read. Otherwise as above."""
    return _read_checked(path, max_bytes, _USED)


def expect_roots_file(path: str) -> None:
    """Refuse a file that an account other than root can write, without opening it.

    Raises:
        FileNotFoundError: it does not exist.
        UsageError: such an account can; the message has mode and owner.
    """
    expect_roots_folder(str(Path(path).parent))
    _expect_file(path, Path(path).lstat(), _WRITTEN)


def expect_roots_secret(path: str) -> None:
    """Refuse a file that an account other than root can write or read. Otherwise as above."""
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
        raise UsageError(problem, where=path, fix=_fix(forbidden), code="E-FILE-NOT-PLAIN")
    if info.st_uid != 0 or info.st_mode & forbidden:
        verb = "write to" if forbidden == _WRITTEN else "use"
        problem = f"accounts other than root can {verb} it ({_access(info)}); nothing was changed"
        raise UsageError(problem, where=path, fix=_fix(forbidden), code="E-FILE-NOT-ROOT-ONLY")


def _fix(forbidden: int) -> str:
    return _FIX if forbidden == _WRITTEN else _FIX_PRIVATE


def expect_roots_folder(path: str) -> None:
    """Refuse a folder in which an account other than root can create, replace or remove a name.

    Each folder above it is checked too, and each to which a link leads. In a sticky folder (/tmp)
    root's names stay root's, so only the last folder must not be sticky and writable. The group
    bits of a file with an access control list are the list's mask, so they show what it grants
    (acl(5)).

    Raises:
        FileNotFoundError: it does not exist.
        UsageError: such an account can; the message has the folder, its mode and its owner.
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
            raise UsageError(
                f"is a link of an account other than root, or one of over {_MAX_LINKS} links",
                where=str(at),
                fix="replace it by a folder, or by a link that belongs to root",
                code="E-FILE-LINK",
            )
        target = at.readlink()
        at = Path("/") if target.is_absolute() else at.parent
        todo = [*target.parts[target.is_absolute() :], *todo]


def _expect_roots(folder: Path, *, is_last: bool) -> None:
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise UsageError(
            "is not a folder",
            where=str(folder),
            fix="replace it by a folder that belongs to root",
            code="E-FILE-NOT-FOLDER",
        )
    is_writable = info.st_mode & 0o022 and (is_last or not info.st_mode & stat.S_ISVTX)
    if info.st_uid != 0 or is_writable:
        problem = f"accounts other than root can change its content ({_access(info)})"
        fix = f"check its content; then `chown root {folder}` and `chmod go-w {folder}`"
        raise UsageError(
            f"{problem}; nothing was changed",
            where=str(folder),
            fix=fix,
            code="E-FILE-NOT-ROOT-ONLY",
        )


def _access(info: os.stat_result) -> str:
    owner = "" if info.st_uid == 0 else f", owner {info.st_uid}"
    return f"mode {stat.S_IMODE(info.st_mode):04o}{owner}"


def read_anybodys(path: str, *, max_bytes: int) -> bytes:
    """Return the content of a file of any account, which may change while it is read.

    Returns at most one byte more than `max_bytes`.

    Raises:
        UsageError: it does not exist, is a link, or is not a plain file.
    """
    try:
        with _opened(path, _NAME_ANOTHER) as fd:
            return _read(fd, max_bytes)
    except FileNotFoundError as error:
        raise UsageError(
            "no such file; nothing was changed",
            where=ascii(path),
            fix=_NAME_ANOTHER,
            code="E-USAGE-UNREADABLE-FILE",
        ) from error


@contextmanager
def _opened(path: str, fix: str) -> Iterator[int]:
    """Open a plain file. Opening a pipe does not block, and a terminal does not become ours."""
    where = path if path.isprintable() else ascii(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise
        problem = f"cannot be opened: {error.strerror}; nothing was changed"
        raise UsageError(problem, where=where, fix=fix, code="E-FILE-OPEN") from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise UsageError(
                "is not a plain file; nothing was changed",
                where=where,
                fix=fix,
                code="E-FILE-NOT-PLAIN",
            )
        yield fd
    finally:
        os.close(fd)


def _read(fd: int, max_bytes: int) -> bytes:
    with os.fdopen(fd, "rb", closefd=False) as file:
        return file.read(max_bytes + 1)


_FIX = "make it a plain file that only root can write: `chown root:root`, `chmod 644`"
_FIX_PRIVATE = "if it may have been read, replace its content; then `chown root:root`, `chmod 600`"
_NAME_ANOTHER = "name a plain file that root can read"
