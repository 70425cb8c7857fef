"""Killing of all descendant processes, for those without a namespace or cgroup of their own."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def end_all() -> None:
    """Kill all descendants of this process, and those that they start meanwhile.

    The caller adopts orphans (prctl(2), PR_SET_CHILD_SUBREAPER), so each one stays a descendant.
    """
    while True:
        for pid in _of(os.getpid()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _of(ancestor: int) -> set[int]:
    parent_by_pid = dict(filter(None, map(_parentage, Path("/proc").glob("[0-9]*"))))
    found = {ancestor}
    while more := {pid for pid, parent in parent_by_pid.items() if parent in found} - found:
        found |= more
    return found - {ancestor}


def _parentage(folder: Path) -> tuple[int, int] | None:
    """Return a process and its parent; None if it has ended. Source: proc_pid_stat(5)."""
    try:
        text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(folder.name), int(text.rpartition(")")[2].split()[1])
