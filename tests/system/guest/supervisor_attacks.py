"""Attacks of a server on its supervisor, which has the same UID. Runs inside, as the server."""

import ctypes
import os
import re
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.system.guest.staying import HIERARCHIES


def hide_groups(levels: int) -> str:
    """Take all rights from its control group; with 2 levels from the one of all sessions too."""
    text = Path("/proc/self/cgroup").read_text()
    path = re.search(r"(?:name=systemd|^0:):(/.+)$", text, re.MULTILINE)
    assert path
    leaf = next(Path(root + path[1]) for root in HIERARCHIES if Path(root + path[1]).is_dir())
    for file in ("cgroup.procs", "cgroup.kill", "cgroup.threads", "tasks"):
        with suppress(OSError):
            (leaf / file).chmod(0)
    leaf.chmod(0)
    if levels == 2:
        leaf.parent.chmod(0)
    try:
        return str(list(leaf.iterdir()))
    except PermissionError:
        return "hidden"


def shut_places() -> str:
    """Take all rights from the folders that its own is in, as far as they are its account's."""
    for place in list(Path.home().parents)[1:-2]:  # not its own, and neither / nor /run
        with suppress(OSError):
            place.chmod(0)
    return "shut"


def make_links(count: int) -> int:
    """Leave so many links to the root of the machine in /tmp."""
    for number in range(count):
        Path(f"/tmp/l{number}").symlink_to("/")
    return count


def reschedule(pid: int) -> dict[str, str]:
    """Try each way to change how a process of its account runs; return the outcomes."""
    return {name: _outcome(way, pid) for name, way in _WAYS.items()}


def set_own_limit() -> int:
    """Set its limit of descriptors by setrlimit(2), for which the C library has prlimit(2)."""
    limit = (ctypes.c_ulong * 2)(64, 64)
    return int(ctypes.CDLL(None).syscall(_SETRLIMIT, resource.RLIMIT_NOFILE, limit))


def _outcome(way: Callable[[int], object], pid: int) -> str:
    try:
        way(pid)
    except OSError as error:
        return os.strerror(error.errno or 0)
    return "done"


_SETRLIMIT = 160  # x86-64
_WAYS: dict[str, Callable[[int], object]] = {
    "processors": lambda pid: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}),
    "limits": lambda pid: resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64)),
    "niceness": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 1),
    "policy": lambda pid: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
}
