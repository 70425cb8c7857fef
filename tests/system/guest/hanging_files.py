"""FUSE file system of an account that stops to answer. Runs in the machine, as root.

Its program is this one: it answers until the account has opened the folder, and no request from
then on. Source: fuse(4), linux/fuse.h.
"""

import ctypes
import json
import os
import pwd
import select
import stat
import struct
from typing import Any

from tests.system.guest.project_folders import FOLDER, seen_with

_REQUEST = struct.Struct("IIQQIIII")  # length, opcode, unique, node, uid, gid, pid, padding
_ANSWER = struct.Struct("IiQ")  # length, error, unique
_GETATTR, _INIT, _OPENDIR = 3, 26, 27
_NOT_KNOWN = -38  # ENOSYS
_NO_SETUID_OR_DEVICES, _DETACH = 6, 2
_libc = ctypes.CDLL(None, use_errno=True)


def seen_in_hanging(server: str, path: str, user: str, option: str, within_s: float) -> Any:
    """Return what a session of this account sees whose folder is on a hanging file system.

    None if it did not start in time. With `option` "allow_other" the kernel asks the program also
    for other accounts.
    """
    account = pwd.getpwnam(user)
    fuse_fd = _device()
    options = f"fd={fuse_fd},rootmode=40000,user_id={account.pw_uid},group_id={account.pw_gid}"
    options += f",{option}" if option else ""
    flags = ctypes.c_ulong(_NO_SETUID_OR_DEVICES)
    if _libc.mount(b"hanging", path.encode(), b"fuse.hanging", flags, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    opened_fd, says_opened_fd = os.pipe()
    told_fd, tells_fd = os.pipe()
    if os.fork() == 0:
        os.initgroups(user, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
        folder_fd = os.open(path, FOLDER)
        os.write(says_opened_fd, b".")
        try:
            seen = seen_with(server, [folder_fd], within_s)
        except TimeoutError:
            seen = None
        os.write(tells_fd, json.dumps(seen).encode())
        os._exit(0)
    os.close(tells_fd)
    _answer_until(opened_fd, fuse_fd, account.pw_uid)
    with os.fdopen(told_fd) as told:
        seen = json.loads(told.read())
    os.close(fuse_fd)  # which fails all requests
    _libc.umount2(path.encode(), _DETACH)
    return seen


def _device() -> int:
    if not os.path.exists("/dev/fuse"):  # in a container  # noqa: PTH110
        os.mknod("/dev/fuse", 0o666 | stat.S_IFCHR, os.makedev(10, 229))
    return os.open("/dev/fuse", os.O_RDWR)


def _answer_until(opened_fd: int, fuse_fd: int, uid: int) -> None:
    while opened_fd not in (ready := select.select([opened_fd, fuse_fd], [], [])[0]):
        assert ready
        _, opcode, unique, *_ = _REQUEST.unpack_from(os.read(fuse_fd, 1 << 20))
        body = {_INIT: _init(), _GETATTR: _attributes(uid), _OPENDIR: bytes(16)}.get(opcode)
        error = _NOT_KNOWN if body is None else 0
        answer = body or b""
        os.write(fuse_fd, _ANSWER.pack(_ANSWER.size + len(answer), error, unique) + answer)


def _init() -> bytes:
    return struct.pack("IIIIHHIIHHI7I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0, *[0] * 7)


def _attributes(uid: int) -> bytes:
    """Return the attributes of a folder, which are valid for no time."""
    times = struct.pack("QII", 0, 0, 0)
    numbers = struct.pack(
        "QQQQQQIIIIIIIIII", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, uid, uid, 0, 4096, 0
    )
    return times + numbers
