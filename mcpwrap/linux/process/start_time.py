"""Start time of this process: with the PID it identifies a process, even after PIDs are reused."""

from pathlib import Path

_STAT = Path("/proc/self/stat")


def start_ticks() -> int:
    """Return field 22 of proc_pid_stat(5): clock ticks from the boot to its start."""
    # The second field, a name in parentheses, may have spaces and parentheses in it.
    after_name = _STAT.read_bytes().rpartition(b")")[2].split()
    return int(after_name[22 - 3])
