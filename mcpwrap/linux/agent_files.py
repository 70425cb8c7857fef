"""Reading agents' files: links are not followed, and what is another account's is not read."""

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.linux import accounts

_MAX_FOLDERS = 64


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that is there and was not read, and why."""

    why: str


def read(path: Path, uid: int, *, within: Path | None, max_bytes: int) -> bytes | Refused | None:
    """Return a file of this account's, or of root's; None, if there is none.

    Returns at most one byte more than `max_bytes`. With `within`, a file that a link in a folder
    above it takes out of that folder is refused.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            return Refused(f"is a link to {str(path.readlink())!a}, and is not followed")
        return Refused(f"cannot be read: {error.strerror}")
    try:
        if why := _why_not(fd, uid, within):
            return Refused(why)
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
