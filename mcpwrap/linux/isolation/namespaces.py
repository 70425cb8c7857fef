"""Unprivileged namespaces of a process, and a mount namespace with given files only.

Source: namespaces(7), user_namespaces(7), mount_namespaces(7), pivot_root(2), tmpfs(5).
"""

import ctypes
import errno
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path

from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.mount import mount_api

_WITH_ALL_BELOW, _PRIVATE = 1 << 14, 1 << 18  # MS_REC, MS_PRIVATE
_NO_PROGRAMS = 2 | 4 | 8  # MS_NOSUID, MS_NODEV, MS_NOEXEC
_DETACH = 2  # MNT_DETACH
_NEW_ROOT = "/proc"  # mount point of the new root: a folder that each machine has
# Such a path is left out. A link (ELOOP) is made in the new root; its target has its own path.
_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP}

_libc = ctypes.CDLL(None, use_errno=True)


class NamespaceFlag(IntFlag):
    """Kinds of namespaces. Without USER, only root can create the others."""

    MOUNTS = 0x00020000
    IPC = 0x08000000
    USER = 0x10000000
    PROCESSES = 0x20000000  # from the caller's next child on, which is PID 1 there
    NETWORK = 0x40000000


def part(kinds: NamespaceFlag) -> None:
    """Enter new namespaces of these kinds. The account stays the same, and is the only one there.

    Raises:
        OSError: this machine does not allow it to an ordinary user.
    """
    uid, gid = os.geteuid(), os.getegid()
    if _libc.unshare(kinds) != 0:
        raise _error()
    for file, text in (
        ("setgroups", "deny"),  # otherwise gid_map would need root
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        Path("/proc/self", file).write_text(text, encoding="ascii")


def make_private() -> None:
    """Keep mounts made from now on out of the namespace that this one was copied from, and its own.

    Raises:
        OSError: the kernel, or a rule of AppArmor for user namespaces, refused.
    """
    _mount(None, "/", _WITH_ALL_BELOW | _PRIVATE)


def why_impossible(uid: int | None = None) -> str:
    """Return why an account can make no user and mount namespaces; "" if it can. Default: our own.

    The caller is single-threaded, and may be root if `uid` is another account.
    """
    pid = os.fork()
    if pid == 0:
        number = 1
        try:
            if uid is not None:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            prctl.allow_dumps()
            part(NamespaceFlag.USER | NamespaceFlag.MOUNTS)
            make_private()
            number = 0
        except OSError as error:
            number = error.errno or 1
        finally:
            os._exit(number)
    _, status = os.waitpid(pid, 0)
    number = os.waitstatus_to_exitcode(status)
    return os.strerror(number) if number else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleFiles:
    """Files that a process can see. Its file system has no other file, and no name of one."""

    to_read: Collection[str]  # paths without links; a missing one is left out
    to_write: Collection[str]
    links: Mapping[str, str]  # target by path: links by which these files may be named
    cwd: str  # an empty folder, unless it is in one of these


def show_only(view: VisibleFiles) -> None:
    """Replace the root by an empty, read-only folder with these files mounted in it.

    So stat(2) and inotify(7), which Landlock does not restrict, find no other file, and chmod(2)
    and utime(2) change only files that may be written. Mounts below a path are mounted with it.
    /proc then shows only processes of the new namespace, unless the machine hides parts of /proc,
    as containers do.

    Raises:
        OSError: the kernel refused.
    """
    make_private()
    trees = list(_trees(view))  # before the new root covers one of them
    _mount("tmpfs", _NEW_ROOT, _NO_PROGRAMS, "tmpfs", "mode=0755,size=64M,nr_inodes=64k")
    for path, tree_fd in trees:
        _attach(tree_fd, _NEW_ROOT + path)
    for path, target in view.links.items():
        _make_link(_NEW_ROOT + path, target)
    Path(_NEW_ROOT + view.cwd).mkdir(parents=True, exist_ok=True)
    mount_api.make_read_only(_NEW_ROOT)
    _change_root(_NEW_ROOT)
    with suppress(OSError):
        _mount("proc", "/proc", _NO_PROGRAMS, "proc")


def outermost(to_read: Collection[str], to_write: Collection[str]) -> list[tuple[str, bool]]:
    """Return the paths to mount, outer ones first, each with whether it may be written.

    A path inside another is mounted only if it may be written and the outer one may not.
    """
    chosen: dict[str, bool] = {}
    for path in sorted({*to_read, *to_write}, key=lambda path: Path(path).parts):
        may_write = path in to_write
        outer = [chosen[above] for above in map(str, Path(path).parents) if above in chosen]
        if not outer or (may_write and not any(outer)):
            chosen[path] = may_write
    return list(chosen.items())


def _trees(view: VisibleFiles) -> Iterator[tuple[str, int]]:
    """Yield each path with a descriptor of its tree, which is not attached yet."""
    for path, may_write in outermost(view.to_read, view.to_write):
        try:
            fd = mount_api.open_path(path)
        except OSError as error:
            if error.errno in _NOT_THERE:
                continue
            raise
        tree_fd = mount_api.copied_with_mounts_below(fd)
        os.close(fd)
        if not may_write:
            mount_api.make_tree_read_only(tree_fd)
        yield path, tree_fd


def _attach(tree_fd: int, path: str) -> None:
    """Mount a tree at a path, which is created if the new root does not have it."""
    if stat.S_ISDIR(os.fstat(tree_fd).st_mode):
        Path(path).mkdir(parents=True, exist_ok=True)
    elif not os.path.lexists(path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
    target_fd = mount_api.open_path(path)
    mount_api.attach(tree_fd, target_fd)
    os.close(target_fd)
    os.close(tree_fd)


def _make_link(path: str, target: str) -> None:
    if not os.path.lexists(path):  # it may be in a mounted tree
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).symlink_to(target)


def _change_root(path: str) -> None:
    """Make a mount the root, and detach the old one, as in pivot_root(2) with `"."` twice."""
    os.chdir(path)
    if _libc.pivot_root(b".", b".") != 0 or _libc.umount2(b".", _DETACH) != 0:
        raise _error()
    os.chdir("/")


def _mount(source: str | None, target: str, flags: int, kind: str = "", options: str = "") -> None:
    origin = None if source is None else os.fsencode(source)
    how = (kind.encode() or None, ctypes.c_ulong(flags), options.encode() or None)
    if _libc.mount(origin, os.fsencode(target), *how) != 0:
        raise _error()


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
