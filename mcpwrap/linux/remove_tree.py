"""Removal and disk usage of a folder with all its content, whatever a program made of it."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

_NO_LINK = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OURS = 0o700
_MAX_DEPTH = 256  # two descriptors each; node_modules in node_modules have some ten
_BLOCK_BYTES = 512  # of st_blocks: stat(3type)
LEAST_BYTES = 4096  # what a file, folder or link counts for: an inode is room too


class OddTreeError(Exception):
    """Folder tree, made by a program, whose content cannot be determined."""


def used_bytes(folder: str, *, at_most: int) -> int:
    """Return what a folder takes of its disk, in bytes; counting ends when that is over `at_most`.

    Sparse files count for what they take, each of several names of a file for its share. What
    comes and goes meanwhile may or may not be counted. No link is followed.

    Raises:
        OddTreeError: a folder in it cannot be listed, or they are nested too deep.
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
    """Return the size to count: a million names of one file, or empty files, take room too."""
    names = 1 if stat.S_ISDIR(info.st_mode) else max(1, info.st_nlink)
    return max(info.st_blocks * _BLOCK_BYTES // names, LEAST_BYTES)


def _descend(
    name: str, in_fd: int | None, fds: list[int], waiting: list["os._ScandirIterator[str]"]
) -> None:
    if len(fds) >= _MAX_DEPTH:
        raise OddTreeError(f"has over {_MAX_DEPTH} folders in one another")
    try:
        fd = os.open(name, os.O_RDONLY | _NO_LINK, dir_fd=in_fd)
    except PermissionError:
        raise OddTreeError("has a folder that cannot be listed") from None
    except OSError as error:
        if fds and error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            return  # it is another by now
        raise
    fds.append(fd)
    waiting.append(os.scandir(fd))


def remove(folder: str) -> None:
    """Remove a folder of the caller's account; what another account owns in it may stay.

    A folder that cannot be listed is made so first; rmtree() would leave it, and what is in it.
    Folders in folders are moved up beside their own: they may be deeper than paths are long, than
    descriptors are many, and than Python calls itself. Names there are to be the caller's alone.
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
    """Remove the files of a folder; return what else is in it."""
    kept = []
    for name in os.listdir(fd):
        try:
            os.unlink(name, dir_fd=fd)
        except OSError:
            kept.append(name)
    return kept


def _listable(name: str, in_fd: int) -> int:
    """Return a folder, opened, after making it the owner's to list, to enter and to change."""
    path_fd = os.open(name, os.O_PATH | _NO_LINK, dir_fd=in_fd)
    try:
        # fchmod(2) takes no O_PATH descriptor, and another needs what is not there yet. proc(5)
        Path(f"/proc/self/fd/{path_fd}").chmod(_OURS)
        return os.open(".", os.O_RDONLY | _NO_LINK, dir_fd=path_fd)
    finally:
        os.close(path_fd)
