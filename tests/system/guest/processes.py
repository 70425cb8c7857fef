"""Processes of a server, and the wait for their end. Runs inside the machine, as root."""

import os
import pwd
import re
import select
from contextlib import suppress
from pathlib import Path


def of_server(account: str, main_pid: str) -> list[int]:
    """Return the processes of this account but its supervisor and what waits for a session.

    The latter is alone in a control group that has no agent's label.
    """
    uid = pwd.getpwnam(account).pw_uid
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if folder.name != main_pid and _runs_as(folder, uid) and not _waits(folder):
                found.append(int(folder.name))
    return found


def _runs_as(folder: Path, uid: int) -> bool:
    if folder.stat().st_uid not in (uid, 0):
        return False
    status = re.search(r"Uid:\s+(\d+)", (folder / "status").read_text())
    return bool(status and int(status[1]) == uid)


def _waits(folder: Path) -> bool:
    group = re.search(r"/s-[0-9a-f]+$", (folder / "cgroup").read_text(), re.MULTILINE)
    groups = list(Path("/sys/fs/cgroup").glob(f"**{group[0]}")) if group else []
    return bool(groups) and not any(list(path.glob("agent-*")) for path in groups)


def await_end(within_s: float, pids: list[int]) -> int:
    """Wait until these have ended; return how many have not, after `within_s`."""
    poll, left = select.poll(), 0
    for pid in pids:
        with suppress(ProcessLookupError):
            poll.register(os.pidfd_open(pid), select.POLLIN)
            left += 1
    while left and (ended := poll.poll(within_s * 1000)):
        for fd, _ in ended:
            poll.unregister(fd)
            left -= 1
    return left
