"""Every method to make a setuid or setgid file. Runs inside the machine, as a server."""

import ctypes
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MODES = (0o4755, 0o2755, 0o755)  # the last is the twin: an ordinary one
CREATE = os.O_CREAT | os.O_WRONLY
FCHMODAT2 = 452  # x86-64 and arm64 number it alike
AT_FDCWD = -100


def tried(folder: str) -> dict[str, list[int]]:
    """Return for each method the errors of the three modes, 0 for success."""
    os.chdir(folder)
    shutil.copy("/bin/true", "x")
    return {name: [_tried(way, mode) for mode in MODES] for name, way in _ways().items()}


def _ways() -> dict[str, Callable[[int], object]]:
    here = os.open(".", os.O_RDONLY)
    fd = os.open("x", os.O_RDONLY)
    return {
        "chmod": lambda mode: os.chmod("x", mode),  # noqa: PTH101 - the call that is meant
        "fchmod": lambda mode: os.fchmod(fd, mode),
        "fchmodat": lambda mode: os.chmod("x", mode, dir_fd=here),
        "fchmodat2": _fchmodat2,
        "mkdir": lambda mode: os.mkdir("folder", mode),  # noqa: PTH102 - the call that is meant
        "mkdirat": lambda mode: os.mkdir("folder", mode, dir_fd=here),
        "mknod": lambda mode: os.mknod("new", stat.S_IFREG | mode),
        "mknodat": lambda mode: os.mknod("new", stat.S_IFREG | mode, dir_fd=here),
        "open": lambda mode: os.close(os.open("new", CREATE, mode)),
        "openat": lambda mode: os.close(os.open("new", CREATE, mode, dir_fd=here)),
        "tmpfile": lambda mode: os.close(os.open(".", os.O_TMPFILE | os.O_WRONLY, mode)),
    }


def _fchmodat2(mode: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(FCHMODAT2, AT_FDCWD, b"x", mode, 0) < 0:
        raise OSError(ctypes.get_errno(), "fchmodat2")


def _tried(way: Callable[[int], object], mode: int) -> int:
    Path("new").unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        Path("folder").rmdir()
    try:
        way(mode)
    except OSError as error:
        return error.errno or -1
    return 0
