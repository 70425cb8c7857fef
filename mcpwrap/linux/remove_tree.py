"""Removal and disk usage of a folder with its content, in any state that a program left it."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

_NO_LINK = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OURS = 0o700
_MAX_DEPTH = 256  # each needs two descriptors; nested node_modules have about ten levels
_BLOCK_BYTES = 512  # of st_blocks: stat(3type)
LEAST_BYTES = 4096  # least size of a file, folder or link: its inode takes room too


class OddTreeError(Exception):
    """Folder tree, made by a program, whose content cannot be determined."""


def used_bytes(folder: str, *, at_most: int) -> int:
    """Return the disk usage of a folder, in bytes; counting ends when it is over `at_most`.

    Sparse files count with the blocks they take, each of a file's names with its share. Files that
    appear or disappear meanwhile may or may not be counted. Links are not followed.

    Raises:
        OddTreeError: a folder in it cannot be listed, or the folders are nested too deep.
        OSError: the folder itself cannot be read.
    """
    used = 0
    fds: list[int] = []
    waiting: list[os._ScandirIterator[str]] = []
    _descend(folder, None, fds, waiting)
    try:
        while waiting and used <= at_most:
            entry = next(waiting[-1], None)
            if entry is None:
                waiting.pop().close()
                os.close(fds.pop())
                continue
            with suppress(FileNotFoundError):
                used += _taken_bytes(entry.stat(follow_symlinks=False))
                if entry.is_dir(follow_symlinks=False):
                    _descend(entry.name, fds[-1], fds, waiting)
    finally:
        for each in waiting:
            each.close()
        for fd in fds:
            os.close(fd)
    return used


def _taken_bytes(info: os.stat_result) -> int:
    """Return the size that counts: a million names of one file, or empty files, take room too."""
    names = 1 if stat.S_ISDIR(info.st_mode) else max(1, info.st_nlink)
    return max(info.st_blocks * _BLOCK_BYTES // names, LEAST_BYTES)


def _descend(
    name: str, in_fd: int | None, fds: list[int], waiting: list["os._ScandirIterator[str]"]
) -> None:
    if len(fds) >= _MAX_DEPTH:
        raise OddTreeError(f"has over {_MAX_DEPTH} levels of folders")
    try:
        fd = os.open(name, os.O_RDONLY | _NO_LINK, dir_fd=in_fd)
    except PermissionError:
        raise OddTreeError("has a folder that cannot be listed") from None
    except OSError as error:
        if fds and error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            return  # it was removed or replaced meanwhile
        raise
    fds.append(fd)
    waiting.append(os.scandir(fd))


def remove(folder: str) -> None:
    """Remove a folder of the caller's account; what another account owns in it may stay.

    A folder that cannot be listed is made listable first; rmtree() would leave it and its content.
    Inner folders are moved up beside their parent: they may be nested deeper than the limits of
    path length, of descriptors and of Python's recursion allow. Only the caller may use the names
    in `folder`.
    """
    with suppress(OSError):
        top_fd = os.open(folder, os.O_RDONLY | _NO_LINK)
        try:
            _empty(top_fd)
        finally:
            os.close(top_fd)
        Path(folder).rmdir()


def _empty(top_fd: int) -> None:
    waiting = _without_files(top_fd)
    moved = 0
    while waiting:
        name = waiting.pop()
        with suppress(OSError):
            fd = _listable(name, top_fd)
            try:
                for inner in _without_files(fd):
                    with suppress(OSError):
                        os.close(_listable(inner, fd))  # its `..` is written to
                        os.rename(inner, f".{moved}", src_dir_fd=fd, dst_dir_fd=top_fd)
                        waiting.append(f".{moved}")
                        moved += 1
            finally:
                os.close(fd)
            os.rmdir(name, dir_fd=top_fd)


def _without_files(fd: int) -> list[str]:
    """Remove the files of a folder; return its other names."""
    left = []
    for name in os.listdir(fd):
        try:
            os.unlink(name, dir_fd=fd)
        except OSError:
            left.append(name)
    return left


def _listable(name: str, in_fd: int) -> int:
    """Open a folder, after giving its owner the right to list, enter and change it."""
    path_fd = os.open(name, os.O_PATH | _NO_LINK, dir_fd=in_fd)
    try:
        # fchmod(2) takes no O_PATH descriptor, and another one needs rights still missing. proc(5)
        Path(f"/proc/self/fd/{path_fd}").chmod(_OURS)
        return os.open(".", os.O_RDONLY | _NO_LINK, dir_fd=path_fd)
    finally:
        os.close(path_fd)
