"""Status of a passed descriptor, without a question to its file system. Source: statx(2).

The program of a FUSE file system, or a server of NFS, can let fstat(2) wait for as long as it
likes. statx(2) with AT_STATX_DONT_SYNC returns what the kernel has.
"""

import ctypes
import fcntl
import os
import stat
import struct
from dataclasses import dataclass

_EMPTY_PATH, _DONT_SYNC = 0x1000, 0x4000  # AT_EMPTY_PATH, AT_STATX_DONT_SYNC
_BASIC = 0x7FF  # STATX_BASIC_STATS
# struct statx: mask, blksize, attributes, nlink, uid, gid, mode, spare, ino; later the device.
_HEAD = struct.Struct("=IIQIIIHHQ")
_DEVICE, _DEVICE_AT, _BYTES = struct.Struct("=II"), 136, 256

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class OpenFolder:
    """Identity of an open folder."""

    device: int
    inode: int
    uid: int


def status_of(fd: int) -> OpenFolder:
    """Return the status of a folder that is open for reading: its holder may list it.

    Raises:
        ValueError: the descriptor is of another file, or opened by O_PATH, which shows no right.
    """
    if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_PATH:
        raise ValueError("a descriptor that was not opened for reading")
    buffer = ctypes.create_string_buffer(_BYTES)
    if _libc.statx(fd, b"", _EMPTY_PATH | _DONT_SYNC, _BASIC, buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    _, _, _, _, uid, _, mode, _, inode = _HEAD.unpack_from(buffer.raw)
    if not stat.S_ISDIR(mode):
        raise ValueError("a descriptor that is not of a folder")
    major, minor = _DEVICE.unpack_from(buffer.raw, _DEVICE_AT)
    return OpenFolder(os.makedev(major, minor), inode, uid)
