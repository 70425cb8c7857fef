"""Snapshot of alice's home, to compare before and after."""

import hashlib
import stat
from pathlib import Path
from typing import NamedTuple

from tests.system.bed.machine import Machine
from tests.system.wrap.people import HOME


class Seen(NamedTuple):
    """One file or folder. If only `owned` is the same, it was written anew."""

    owned: tuple[str, int, int, int]  # type and mode, owner, group, names
    content: str  # SHA-256 of it, or the target of a link
    made: tuple[int, int]  # inode, time


def seen(machine: Machine) -> dict[str, Seen]:
    """Return everything in alice's home, but for mcpwrap's files there."""
    top = machine.path(HOME)
    found = {f"{HOME}/{path.relative_to(top)}": _one(path) for path in (top, *top.rglob("*"))}
    return {path: one for path, one in found.items() if "/.local" not in path}


def _one(path: Path) -> Seen:
    info, content = path.lstat(), ""
    if stat.S_ISLNK(info.st_mode):
        content = str(path.readlink())
    elif stat.S_ISREG(info.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    names = info.st_nlink if stat.S_ISREG(info.st_mode) else 0
    owned = (stat.filemode(info.st_mode), info.st_uid, info.st_gid, names)
    is_folder = stat.S_ISDIR(info.st_mode)
    return Seen(owned, content, (info.st_ino, 0 if is_folder else info.st_mtime_ns))
