"""Passed descriptor of a folder, examined without a question to its file system.

The program of a FUSE file system, or a server of NFS, can let fstat(2) wait for as long as it
likes. statx(2) with AT_STATX_DONT_SYNC returns what the kernel has. Source: statx(2), fcntl(2).
"""

import ctypes
import errno
import fcntl
import os
import struct
from dataclasses import dataclass

_EMPTY_PATH, _DONT_SYNC = 0x1000, 0x4000  # AT_EMPTY_PATH, AT_STATX_DONT_SYNC
_INODE = 0x100  # STATX_INO
# In struct statx, of 256 bytes: what is valid, the inode, and the device's two numbers.
_MASK = struct.Struct("=I")
_INODE_FIELD, _INODE_AT = struct.Struct("=Q"), 32
_DEVICE, _DEVICE_AT, _BYTES = struct.Struct("=II"), 136, 256

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class OpenFolder:
    """Identity of an open folder."""

    device: int
    inode: int


def expect_folder(fd: int) -> None:
    """Refuse a descriptor that is not of a folder, opened as one for reading: the holder may list.

    Raises:
        ValueError: it is of another file, or was opened by O_PATH, which shows no right.
    """
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    if flags & os.O_PATH or flags & os.O_ACCMODE != os.O_RDONLY:
        raise ValueError("a descriptor that was not opened for reading")
    if not flags & os.O_DIRECTORY:  # with which open(2) refuses other files
        raise ValueError("a descriptor that was not opened as a folder")


def identity_of(fd: int) -> OpenFolder:
    """Return the identity of an open folder.

    Raises:
        OSError: the kernel does not tell, as of a FUSE file system of another account.
    """
    buffer = ctypes.create_string_buffer(_BYTES)
    if _libc.statx(fd, b"", _EMPTY_PATH | _DONT_SYNC, _INODE, buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    (mask,) = _MASK.unpack_from(buffer.raw)
    if not mask & _INODE:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    (inode,) = _INODE_FIELD.unpack_from(buffer.raw, _INODE_AT)
    major, minor = _DEVICE.unpack_from(buffer.raw, _DEVICE_AT)
    return OpenFolder(os.makedev(major, minor), inode)
