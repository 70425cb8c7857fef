"""Agents' files: reading (the account's or root's) and atomic replacement; no link is followed."""

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
from mcpwrap.linux.folder_sync import sync_folder

_MAX_FOLDERS = 64
# Attributes that the owner of a file sets; the system sets the others on each new file.
_ATTRIBUTES = ("user.", "system.posix_acl_access")


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """Existing file that was not read, and the reason."""

    why: str


def read(
    path: Path, uid: int, *, within: Path | None, max_bytes: int
) -> bytes | UnreadableFile | None:
    """Return the content of a file of this account or of root; None if there is no file.

    Returns at most one byte more than `max_bytes`. With `within`, a file outside that folder is
    refused, also if `..` or a link in a folder above it leads there.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:  # a NUL, or a lone surrogate
        return UnreadableFile("is not a valid path")
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            target = str(path.readlink())
            return UnreadableFile(f"is a symbolic link to {target!a}, which is not followed")
        return UnreadableFile(f"cannot be read: {error.strerror}")
    try:
        if why := _refusal_reason(fd, uid, within):
            return UnreadableFile(why)
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(max_bytes + 1)
    finally:
        os.close(fd)


def _refusal_reason(fd: int, uid: int, within: Path | None) -> str:
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        return "is not a plain file"
    if info.st_uid not in {uid, 0}:
        return f"belongs to {accounts.name_of(info.st_uid) or info.st_uid}"
    real = Path(f"/proc/self/fd/{fd}").readlink()
    if within and not real.is_relative_to(within.resolve()):
        return f"leads to {str(real)!a}, outside the folder that it belongs to"
    return ""


def project_folders(folder: Path) -> Iterator[Path]:
    """Yield a folder and those above it up to the top of its repository; without one, it alone."""
    chain = [folder, *folder.parents][:_MAX_FOLDERS]
    top = next((n for n, each in enumerate(chain) if os.path.lexists(each / ".git")), 0)
    yield from chain[: top + 1]


def check_replaceable(path: Path, was: bytes) -> None:
    """Check that a file can be replaced, as far as possible without replacing it.

    Raises:
        McpwrapError: it cannot be replaced.
    """
    _info(path, was)
    if not os.access(path.parent, os.W_OK | os.X_OK, effective_ids=True):
        raise _not_replaced(
            path,
            "its folder is not writable",
            "let this account write to the folder",
            code="E-AGENT-FILE-WRITE",
        )


def replace(path: Path, was: bytes, new: bytes) -> None:
    """Replace the content of a file, whole or not at all, even if the power fails.

    Mode, group, access control list and attributes stay. A process that has the file open keeps the
    old content. Source: rename(2).

    Raises:
        McpwrapError: the content is not `was`, or the file is a link, belongs to another account or
            cannot be written; nothing was changed.
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
            _info(path, was)  # again, and as late as possible: agents write at any time
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _not_replaced(
            path,
            f"cannot be written: {error.strerror}",
            "let this account write to the folder, or make room on its file system",
            code="E-AGENT-FILE-WRITE",
        ) from error
    with contextlib.suppress(OSError):  # it is replaced nevertheless
        sync_folder(path.parent)


def _info(path: Path, was: bytes) -> os.stat_result:
    """Return the status of a file after the checks that it can be replaced (stat(2))."""
    content = read(path, os.geteuid(), within=None, max_bytes=len(was))
    if isinstance(content, UnreadableFile):
        fix = "name a plain file of this account"
        raise _not_replaced(path, content.why, fix, code="E-AGENT-FILE-UNREADABLE")
    if content is None:
        problem, fix = "does not exist any more", "find out why, then repeat the command"
        raise _not_replaced(path, problem, fix, code="E-AGENT-FILE-CHANGED")
    if content != was:
        problem, fix = "was changed in the meantime", "repeat the command"
        raise _not_replaced(path, problem, fix, code="E-AGENT-FILE-CHANGED")
    info = path.lstat()
    if info.st_uid != os.geteuid():
        owner = accounts.name_of(info.st_uid) or info.st_uid
        problem, fix = f"belongs to {owner}", "run the command under that account"
        raise _not_replaced(path, problem, fix, code="E-AGENT-FILE-OWNER")
    if info.st_nlink > 1:
        problem = f"has {info.st_nlink} names (hard links), which would become two files"
        fix = "remove the other names"
        raise _not_replaced(path, problem, fix, code="E-AGENT-FILE-HARD-LINK")
    if not info.st_mode & stat.S_IWUSR:
        fix = f"`chmod u+w {path}`"
        raise _not_replaced(path, "is read-only", fix, code="E-AGENT-FILE-READ-ONLY")
    return info


def _like(path: Path, info: os.stat_result, fd: int) -> None:
    """Give an open file the group, the mode and the attributes of another file."""
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
        return []  # the file system does not support attributes
    return [name for name in names if name.startswith(_ATTRIBUTES)]


def _not_replaced(path: Path, problem: str, fix: str, *, code: str) -> McpwrapError:
    return McpwrapError(f"{problem}; nothing was changed", where=str(path), fix=fix, code=code)
