"""Methods of a server to outlive its session, or to leave much behind. Runs inside the machine."""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

HIERARCHIES = ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified")
NAP_S = 1000.0  # longer than any story: such a process is killed


def become_a_daemon() -> int:
    """Leave a daemon in the textbook way: forked twice, in a session of its own, all closed."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 100)
            time.sleep(NAP_S)
        os._exit(0)
    os.waitpid(child, 0)
    return os.getpid()


def leave_a_child(status: int) -> None:
    """End with this status, and leave a child."""
    if os.fork():
        os._exit(status)
    time.sleep(NAP_S)


def stay(groups: Sequence[str]) -> list[int]:
    """Ignore signals, leave three daemons, and try to move into each control group.

    Return the error for each of `groups`; 0 is for a successful move, to any.
    """
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    for _ in range(3):
        become_a_daemon()
    slices = ("system.slice", "user.slice", "init.scope")
    tried = [_moved_to(f"{root}/{path}") for root in HIERARCHIES for path in slices]
    return [0 for told in tried if told == 0] + [_moved_to(path) for path in groups]


def _moved_to(group: str) -> int:
    try:
        Path(group, "cgroup.procs").write_text("0")
    except OSError as error:
        return error.errno or -1
    return 0


def make_a_deep_tree(depth: int) -> str:
    """Make nested folders, the last of which refuses every removal."""
    for _ in range(depth):
        Path("d").mkdir()
        os.chdir("d")
    Path().chmod(0o500)
    return "deep"
