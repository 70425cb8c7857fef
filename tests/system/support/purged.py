"""Files, accounts, units and packet rules that differ from those before an installation."""

from tests.system.bed.machine import Machine
from tests.system.support.kill_at_syscall import FORK, ROOTS_PROGRAM, STRACE

Snapshot = dict[str, object]
PURGE = f"{ROOTS_PROGRAM} purge --yes"
MAX_KILLS = 100


def snapshot(machine: Machine) -> Snapshot:
    """Return the state of the machine, as `guest/root_files.py` describes it."""
    found: Snapshot = machine.look_by("root_files", "snapshot")
    return found


def changed(before: Snapshot, after: Snapshot) -> set[str]:
    """Return the paths, and `units` and `rules`, that are not the same in both."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def purge_killed_on_the_way(machine: Machine) -> int:
    """Run `mcpwrap purge` until it ends; return how often it was killed before.

    The first run is killed at its first command, the second at its second, and so on: each goes on
    where the one before it ended.
    """
    for number in range(1, MAX_KILLS):
        inject = f"inject={FORK}:signal=SIGKILL:when={number}"
        strace = f"{STRACE} -o /dev/null -e trace={FORK} -e {inject}"
        *_, status = machine.as_root(f"{strace} {PURGE}; echo $?").out.splitlines()
        if status == "0":
            return number - 1
        assert status == "137", f"after {number - 1} kills it ended with {status}"
    raise AssertionError(f"it has not ended after {MAX_KILLS} kills")
