"""Sealed memfds: bytes passed to another process, which neither side can change afterwards."""

import fcntl
import os

# Source: fcntl(2), "File Sealing".
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def sealed(name: str, data: bytes) -> int:
    """Return a descriptor of a memfd with `data`; the caller closes it. Source: memfd_create(2)."""
    fd = unsealed(name)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        seal(fd)
    except BaseException:
        os.close(fd)
        raise
    return fd


def unsealed(name: str) -> int:
    """Return a descriptor of an empty memfd; the caller closes it."""
    return os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)


def seal(fd: int) -> None:
    """Forbid all later changes of a memfd.

    Raises:
        OSError: a process has it mapped for writing.
    """
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)


def read_all(fd: int) -> bytes:
    """Return the whole content. The only system call is pread(2)."""
    data = b""
    while piece := os.pread(fd, 1 << 20, len(data)):
        data += piece
    return data
