"""Processes of a server, and the wait for their end. Runs inside the machine, as root."""

import os
import pwd
import re
import select
from contextlib import suppress
from pathlib import Path

# Where one hierarchy of control groups is: version 2, and the one of a hybrid host.
TREES = tuple(Path("/sys/fs/cgroup", name) for name in (".", "unified", "systemd"))


def of_server(account: str, main_pid: str) -> list[int]:
    """Return the account's processes without its supervisor and a pre-forked process.

    The latter is alone in a control group that has no agent's label, or on its way there.
    """
    uid = pwd.getpwnam(account).pw_uid
    main = Path("/proc", main_pid)
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if folder.name != main_pid and _runs_as(folder, uid) and not _waits(folder, main):
                found.append(int(folder.name))
    return found


def _runs_as(folder: Path, uid: int) -> bool:
    if folder.stat().st_uid not in (uid, 0):
        return False
    status = re.search(r"Uid:\s+(\d+)", (folder / "status").read_text())
    return bool(status and int(status[1]) == uid)


def _waits(folder: Path, main: Path) -> bool:
    paths = re.findall(r"^\d+:[^:]*:(.*)$", (folder / "cgroup").read_text(), re.MULTILINE)
    if any(path.endswith("/supervisor") for path in paths):  # forked, and not moved yet
        return _command(folder) == _command(main)
    own = [path for path in paths if re.search(r"/s-[0-9a-f]+$", path)]
    groups = [tree / path.lstrip("/") for path in own for tree in TREES]
    there = [group for group in groups if group.is_dir()]
    return bool(there) and not any(list(group.glob("agent-*")) for group in there)


def _command(folder: Path) -> bytes:
    return (folder / "cmdline").read_bytes()


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
