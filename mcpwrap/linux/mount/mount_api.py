"""Mount system calls by descriptor, so that no path is resolved twice and no link is followed.

Source: openat2(2), open_tree(2), mount_setattr(2), move_mount(2), setns(2), linux/mount.h. Python
has no binding; the calls are made by number, which since 2019 is the same on every architecture.
"""

import ctypes
import errno
import os
import stat
import struct
from enum import IntFlag

_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
_HERE = -100  # AT_FDCWD
_NO_MAGIC_LINKS, _NO_SYMLINKS = 0x02, 0x04
_CLONE, _EMPTY_PATH, _RECURSIVE = (
    0x1,
    0x1000,
    0x8000,
)  # OPEN_TREE_CLONE; AT_EMPTY_PATH, AT_RECURSIVE
_FROM_EMPTY_PATH, _TO_EMPTY_PATH = 0x04, 0x40
_PRIVATE = 1 << 18  # MS_PRIVATE
_NEW_MOUNT_NAMESPACE = 0x00020000
_NO_SETUID_OR_DEVICES, _NO_PROGRAMS = 2 | 4, 8  # MS_NOSUID, MS_NODEV; MS_NOEXEC

_libc = ctypes.CDLL(None, use_errno=True)


class Attribute(IntFlag):
    """Attributes of one mount, which apply even if the file system itself allows more."""

    READ_ONLY = 0x1
    NO_SETUID = 0x2
    NO_DEVICES = 0x4
    MAPPED = 0x00100000


def open_path(path: str) -> int:
    """Return a descriptor of the file at this absolute path, opened by O_PATH only to name it.

    Raises:
        OSError: it does not exist; ELOOP: a symbolic link is in the path, or at its end.
    """
    return _opened(path, 0)


def open_itself(path: str) -> int:
    """Return the same as `open_path`; if the path ends in a symbolic link, the link itself."""
    return _opened(path, os.O_NOFOLLOW)


def _opened(path: str, flags: int) -> int:
    flags |= os.O_PATH | os.O_CLOEXEC
    how = struct.pack("QQQ", flags, 0, _NO_MAGIC_LINKS | _NO_SYMLINKS)
    try:
        return _call(_OPENAT2, _HERE, os.fsencode(path), how, ctypes.c_size_t(len(how)))
    except OSError as error:
        if error.errno != errno.ENOSYS:  # by RestrictSUIDSGID=, whose filter cannot read `how`
            raise
    return _opened_in_steps(path, flags)


def _opened_in_steps(path: str, flags: int) -> int:
    """Open each folder of the path by its name in the one before, which follows no link."""
    *folders, last = path.split("/")[1:]
    fd = os.open("/", os.O_PATH | os.O_DIRECTORY)
    for name in (*folders, last):
        above_fd = fd
        try:
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=above_fd)
        finally:
            os.close(above_fd)
        is_itself = name is last and flags & os.O_NOFOLLOW
        if stat.S_ISLNK(os.fstat(fd).st_mode) and not is_itself:
            os.close(fd)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return fd


def copied(fd: int) -> int:
    """Return a new mount of the file at `fd`, without the mounts in it, not attached yet."""
    return _call(_OPEN_TREE, fd, b"", _CLONE | _EMPTY_PATH | os.O_CLOEXEC)


def copied_with_mounts_below(fd: int) -> int:
    """Return a new mount of the file at `fd`, with all mounts in it, not attached yet."""
    return _call(_OPEN_TREE, fd, b"", _CLONE | _EMPTY_PATH | _RECURSIVE | os.O_CLOEXEC)


def make_tree_read_only(mount_fd: int) -> None:
    """Make a mount, and all mounts in it, read-only."""
    _set(mount_fd, b"", _EMPTY_PATH | _RECURSIVE, Attribute.READ_ONLY)


def make_read_only(path: str) -> None:
    """Make the mount at this path read-only, but not the mounts in it."""
    _set(_HERE, os.fsencode(path), 0, Attribute.READ_ONLY)


def set_attributes(mount_fd: int, attributes: Attribute, namespace_fd: int = 0) -> None:
    """Add these attributes, keep all others, and make the mount private.

    A copy begins as a peer: a mount in one would appear in the other (mount_namespaces(7)).
    `namespace_fd` is the user namespace whose map MAPPED uses.
    """
    wanted = struct.pack("QQQQ", attributes, 0, _PRIVATE, namespace_fd)
    _call(_MOUNT_SETATTR, mount_fd, b"", _EMPTY_PATH, wanted, ctypes.c_size_t(len(wanted)))


def expect_mapped(mount_fd: int, namespace_fd: int) -> None:
    """Map the owners of a mount, if its file system can; refuse a kernel that cannot.

    Raises:
        OSError: the kernel or a filter of system calls refuses to map any mount.
    """
    try:
        set_attributes(mount_fd, Attribute.MAPPED, namespace_fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # mount_setattr(2): this file system cannot
            raise


def _set(fd: int, path: bytes, how: int, attributes: Attribute) -> None:
    wanted = struct.pack("QQQQ", attributes, 0, 0, 0)
    _call(_MOUNT_SETATTR, fd, path, how, wanted, ctypes.c_size_t(len(wanted)))


def attach(mount_fd: int, target_fd: int) -> None:
    """Attach a mount that `copied` returned over the file at `target_fd`."""
    _call(_MOVE_MOUNT, mount_fd, b"", target_fd, b"", _FROM_EMPTY_PATH | _TO_EMPTY_PATH)


def attach_empty_folder(path: str) -> None:
    """Mount an empty folder of the caller over `path`: in memory, of at most 1 MiB."""
    _attach_tmpfs(path, _NO_SETUID_OR_DEVICES | _NO_PROGRAMS, "mode=0755,size=1M,nr_inodes=4k")


def attach_temporary_folder(path: str, size: str) -> None:
    """Mount an empty folder over `path`, as /tmp is: in memory, of at most this size (tmpfs(5))."""
    _attach_tmpfs(path, _NO_SETUID_OR_DEVICES, f"mode=1777,size={size},nr_inodes=16k")


def _attach_tmpfs(path: str, flags: int, options: str) -> None:
    how = (b"tmpfs", ctypes.c_ulong(flags), options.encode())
    if _libc.mount(b"tmpfs", path.encode(), *how) != 0:
        raise _error()


def view_of(pid: int, uid: int) -> int:
    """Return the mount namespace of a process of this account; it is not the caller's namespace.

    Raises:
        OSError: it has ended.
        PermissionError: the process belongs to another account, or has the caller's namespace.
    """
    folder_fd = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # All three are of one process: after its end this folder stays empty, even if the PID is
        # reused.
        status_fd = os.open("status", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder_fd)
        with os.fdopen(status_fd) as status:
            uids = next(line.split()[1:] for line in status if line.startswith("Uid:"))
        view_fd = os.open("ns/mnt", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder_fd)
    finally:
        os.close(folder_fd)
    ours = os.stat("/proc/self/ns/mnt")  # noqa: PTH116 - compared as what os.fstat returns
    if uids != [str(uid)] * 4 or os.path.samestat(os.fstat(view_fd), ours):
        raise PermissionError(errno.EPERM, f"process {pid} is not a wrapper of UID {uid}")
    return view_fd


def enter_view(view_fd: int) -> None:
    """Enter a mount namespace for good; its root becomes root and working directory."""
    if _libc.setns(view_fd, _NEW_MOUNT_NAMESPACE) != 0:
        raise _error()


def _call(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        raise _error()
    return result


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
