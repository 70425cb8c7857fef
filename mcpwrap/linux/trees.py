"""Removing a folder with all in it, whatever a program did to keep it."""

import os
from contextlib import suppress
from pathlib import Path

_NO_LINK = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OURS = 0o700


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
