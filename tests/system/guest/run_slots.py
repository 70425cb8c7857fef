"""Run slots as root sees them: accounts, processes, and what is left. Runs inside the machine."""

import pwd
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FOLDERS = ("/run", "/tmp", "/var/tmp", "/dev/shm", "/var/lib/mcpwrap", "/var/cache/mcpwrap")
KEPT = "/var/cache/mcpwrap/*/out/*"  # files of /out, which later calls may name


@dataclass(frozen=True)
class SlotProcess:
    """Process of a run slot's account."""

    pid: int
    parent: int
    uid: int
    started: str  # in ticks: with the PID it is unique
    namespace: str  # of mounts: each start of a unit has one of its own

    @property
    def is_supervisor(self) -> bool:
        """Return whether PID 1 has started it."""
        return self.parent == 1


def processes(pool: str) -> list[SlotProcess]:
    """Return the processes of all slots of a pool. Zombies have none of their mounts any more."""
    uids = {each.pw_uid for each in pwd.getpwall() if each.pw_name.startswith(f"mcpj-{pool}-")}
    return [
        found
        for folder in Path("/proc").glob("[0-9]*")
        if (found := _process(int(folder.name), uids)) is not None
    ]


def _process(pid: int, uids: set[int]) -> SlotProcess | None:
    folder = Path("/proc", str(pid))
    with suppress(OSError):
        lines = (folder / "status").read_text().splitlines()
        uid = next(int(line.split()[1]) for line in lines if line.startswith("Uid:"))
        if uid in uids:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            namespace = str((folder / "ns/mnt").readlink())
            return SlotProcess(pid, int(stat[1]), uid, stat[19], namespace)
    return None


def first_processes(pool: str) -> list[SlotProcess]:
    """Return the first process of each run that goes on. Supervisors adopt the later ones."""
    return _first_of(processes(pool))


def _first_of(found: list[SlotProcess]) -> list[SlotProcess]:
    supervisors = {each.pid for each in found if each.is_supervisor}
    oldest_first = sorted(found, key=lambda each: (int(each.started), each.pid), reverse=True)
    return list({each.parent: each for each in oldest_first if each.parent in supervisors}.values())


class SlotWatch:
    """Samples of the processes of a pool: no account may have those of two runs at once."""

    def __init__(self, pool: str) -> None:
        self._pool = pool
        self.samples = 0
        self.most_runs = 0
        self.shared: list[str] = []  # accounts that two runs had at once

    def look(self) -> None:
        """Take one sample."""
        self.samples += 1
        found = processes(self._pool)
        self.most_runs = max(self.most_runs, len(_first_of(found)))
        for one in found:
            others = [it for it in found if it.uid == one.uid and it.namespace != one.namespace]
            # One that was seen before and is alive after the other was seen: both at once.
            if others and all(_process(it.pid, {it.uid}) == it for it in (one, others[0])):
                self.shared.append(f"{one} and {others[0]}")


def traces(pool: str) -> dict[str, str]:
    """Return everything that runs could leave, named or counted."""
    found = {}
    for what, command in _looks(pool).items():
        argv = ["sh", "-c", f"{{ {command}; }}; true"]
        found[what] = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return found


def _looks(pool: str) -> dict[str, str]:
    """Return the shell commands that show what runs could leave."""
    uids = [each.pw_uid for each in pwd.getpwall() if each.pw_name.startswith(f"mcpj-{pool}-")]
    of_slots = " -o ".join(f"-uid {uid}" for uid in uids)
    others = [KEPT, "*/systemd/*", "/run/log/*", "*/audit/*", "*/systemd-private-*"]
    beside = " ".join(f"! -path '{path}'" for path in others)
    list_units = "systemctl list-units --plain --no-legend"
    pid_1 = "/run/systemd/propagate /run/systemd/units"
    worker = "$(systemctl show -P MainPID mcpwrap-worker)"
    return {
        "processes": f"ps -eo user:32,args | grep '^mcpj-{pool}-' | sort",
        "units": f"{list_units} --all 'mcpwrap-job@{pool}-*' | sort",
        "failed units": f"{list_units} --state=failed",
        "mounts": "wc -l < /proc/1/mountinfo",
        "control groups": f"find /sys/fs/cgroup -type d -path '*mcpwrap-job@{pool}-*.service*'",
        "files": f"find {' '.join(FOLDERS)} -xdev {beside} | sort",
        "files of slots": f"find / /dev /run /tmp /dev/shm -xdev \\( {of_slots} \\) 2>/dev/null",
        "traces of PID 1": f"ls {pid_1} | grep 'mcpwrap-job@{pool}-'",
        "keys": "; ".join(f"grep '^ *{uid}:' /proc/key-users" for uid in uids),
        "descriptors of the worker": f"ls /proc/{worker}/fd | wc -l",
    }


def memory_kib(unit: str) -> int:
    """Return the resident memory of the main process of a unit."""
    show = ["systemctl", "show", "-P", "MainPID", unit]
    pid = subprocess.run(show, capture_output=True, text=True, check=True).stdout.strip()
    lines = Path("/proc", pid, "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
