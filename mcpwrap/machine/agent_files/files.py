"""Agents' files: reading (one's own or root's) and atomic replacement; no link is followed."""

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.errors import McpwrapError
from mcpwrap.linux import accounts

_MAX_FOLDERS = 64
# What the owner of a file gives it; the others the system gives to each that is made.
_ATTRIBUTES = ("user.", "system.posix_acl_access")


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """Existing file that was not read, and the reason."""

    why: str


def read(
    path: Path, uid: int, *, within: Path | None, max_bytes: int
) -> bytes | UnreadableFile | None:
    """Return a file of this account's, or of root's; None, if there is none.

    Returns at most one byte more than `max_bytes`. With `within`, a file that a link in a folder
    above it takes out of that folder is refused.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:  # a NUL, or half of a character
        return UnreadableFile("is no path of a file")
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            return UnreadableFile(f"is a link to {str(path.readlink())!a}, and is not followed")
        return UnreadableFile(f"cannot be read: {error.strerror}")
    try:
        if why := _why_not(fd, uid, within):
            return UnreadableFile(why)
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(max_bytes + 1)
    finally:
        os.close(fd)


def _why_not(fd: int, uid: int, within: Path | None) -> str:
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        return "is not a plain file"
    if info.st_uid not in {uid, 0}:
        return f"belongs to {accounts.name_of(info.st_uid) or info.st_uid}"
    real = Path(f"/proc/self/fd/{fd}").readlink()
    if within and not real.is_relative_to(within.resolve()):
        return f"is {str(real)!a}, by a link in a folder above it"
    return ""


def project_folders(folder: Path) -> Iterator[Path]:
    """Yield a folder, and those above it up to the top of its repository; alone, if it has none."""
    chain = [folder, *folder.parents][:_MAX_FOLDERS]
    top = next((n for n, each in enumerate(chain) if os.path.lexists(each / ".git")), 0)
    yield from chain[: top + 1]


def check_replaceable(path: Path, was: bytes) -> None:
    """See whether a file can be replaced, as far as that can be known without doing it.

    Raises:
        McpwrapError: it cannot.
    """
    _info(path, was)
    if not os.access(path.parent, os.W_OK | os.X_OK, effective_ids=True):
        raise _not_replaced(path, "nothing can be written to its folder", "make that writable")


def replace(path: Path, was: bytes, new: bytes) -> None:
    """Put other bytes into a file, whole or not at all, also if the power goes.

    Mode, group, access list and attributes stay. Whoever has it open keeps what was there. Source:
    rename(2).

    Raises:
        McpwrapError: it is not what it `was`, a link, another account's, or cannot be written;
            nothing was changed.
    """
    info = _info(path, was)
    try:
        fd, name = tempfile.mkstemp(prefix=".mcpwrap-", dir=path.parent)
        temporary = Path(name)
        try:
            with os.fdopen(fd, "wb") as file:
                _like(path, info, fd)
                file.write(new)
                file.flush()
                os.fsync(fd)
            _info(path, was)  # again, and at last: agents write their files at any time
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        fix = "let this account write there, or make room"
        raise _not_replaced(path, f"cannot be written: {error.strerror}", fix) from error
    _sync_folder(path.parent)


def _info(path: Path, was: bytes) -> os.stat_result:
    """Return what is known of a file that can be replaced."""
    content = read(path, os.geteuid(), within=None, max_bytes=len(was))
    if isinstance(content, UnreadableFile):
        raise _not_replaced(path, content.why, "name a plain file of this account's")
    if content is None:
        raise _not_replaced(path, "is gone", "look where it went, and try it again")
    if content != was:
        raise _not_replaced(path, "was changed by somebody in the meantime", "try it again")
    info = path.lstat()
    if info.st_uid != os.geteuid():
        owner = accounts.name_of(info.st_uid) or info.st_uid
        raise _not_replaced(path, f"belongs to {owner}", "let that account do it")
    if info.st_nlink > 1:
        problem = f"has {info.st_nlink} names (hard links), which would be two files then"
        raise _not_replaced(path, problem, "remove the others")
    if not info.st_mode & stat.S_IWUSR:
        raise _not_replaced(path, "is read-only", f"chmod u+w {path}")
    return info


def _like(path: Path, info: os.stat_result, fd: int) -> None:
    """Give an open file the group, the mode and the attributes of another."""
    if os.fstat(fd).st_gid != info.st_gid:
        os.fchown(fd, -1, info.st_gid)
    os.fchmod(fd, stat.S_IMODE(info.st_mode))
    for name in _attributes(path):
        os.setxattr(fd, name, os.getxattr(path, name, follow_symlinks=False))


def _attributes(path: Path) -> list[str]:
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return []  # this file system has none
    return [name for name in names if name.startswith(_ATTRIBUTES)]


def _sync_folder(folder: Path) -> None:
    """Have the new name on the disk; where that cannot be asked for, the file is there as well."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _not_replaced(path: Path, problem: str, fix: str) -> McpwrapError:
    return McpwrapError(f"{problem}; nothing was changed", where=str(path), fix=fix)
