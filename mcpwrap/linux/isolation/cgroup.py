"""Cgroup of each session: resource limits, and killing of all its processes at once.

Works in the tree that systemd delegates: cgroup v2, or the `name=systemd` tree of a v1 machine,
which has no controllers. Source: cgroups(7), Documentation/admin-guide/cgroup-v2.rst.
"""

import os
import re
import select
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_V1 = Path("/sys/fs/cgroup/systemd")
_V1_MEMORY = Path("/sys/fs/cgroup/memory")
_V2 = Path("/sys/fs/cgroup")
_HYBRID = Path("/sys/fs/cgroup/unified")
TREES = (_V2, _HYBRID, _V1)
_CONTROLLERS = frozenset({"memory", "pids", "cpu"})
_CPU_PERIOD_US = 100_000  # the kernel's own default
_END_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupLimits:
    """Resource limits of one session. `cpu_percent` is of one processor; 0 is no limit."""

    memory_bytes: int
    tasks: int
    cpu_percent: int


def own() -> Path:
    """Return the cgroup of this process, in the tree that systemd delegates.

    Raises:
        RuntimeError: no cgroup is writable for this process.
    """
    for pattern, root in (
        (r"^0::(.*)$", _V2),
        (r"^0::(.*)$", _HYBRID),
        (r":name=systemd:(.*)$", _V1),
    ):
        path = _found(pattern, root)
        if path and os.access(path / "cgroup.procs", os.W_OK) and os.access(path, os.W_OK):
            return path
    raise RuntimeError("systemd has not delegated a cgroup to this process [E-SYSTEM-CGROUP]")


def delegate(tree: Path) -> bool:
    """Enable all controllers for the groups below; return whether these have them now.

    No process may be in `tree` itself: cgroup-v2.rst, "No Internal Process Constraint".
    """
    file = tree / "cgroup.subtree_control"
    with suppress(OSError):
        file.write_text(" ".join(f"+{name}" for name in sorted(_CONTROLLERS)))
    with suppress(OSError):
        return set(file.read_text().split()) >= _CONTROLLERS
    return False


def split_off_supervisor(limits: CgroupLimits) -> tuple[Path, CgroupLimits | None]:
    """Move this process into a leaf of its cgroup, which leaves the tree to the sessions.

    Return the tree, and the limits if they can be enforced there.

    Raises:
        OSError: the cgroup is not delegated to this account.
    """
    tree = own()
    leaf = Leaf(tree, "supervisor")
    leaf.make()
    leaf.enter()
    return tree, limits if delegate(tree) else None


def kills_for_memory() -> int:
    """Return the number of out-of-memory kills in the whole unit."""
    for pattern, root, name in (
        (r"^0::(.*)/supervisor$", _V2, "memory.events"),
        (r":memory:(.*)$", _V1_MEMORY, "memory.oom_control"),
    ):
        with suppress(OSError):
            file = _found(pattern, root, name)
            if file is None:
                continue
            return _event(file.read_text(), "oom_kill")
    return 0


class Leaf:
    """Cgroup below a wrapper's cgroup, for one session or for the supervisor.

    A server owns its cgroup as its supervisor does, and Landlock does not restrict chmod(2). So
    permissions that a server took away are restored, and the file that kills a cgroup is held open
    from the start.
    """

    def __init__(self, parent: Path, name: str) -> None:
        self._path = parent / name
        self._kill_fd = -1

    def make(self) -> None:
        """Create the cgroup.

        Raises:
            OSError: it exists, or there are too many.
        """
        self._open_up()
        self._path.mkdir()
        self._open_up()
        with suppress(OSError):  # v1, and v2 before Linux 5.14, have no such file
            self._kill_fd = os.open(self._path / "cgroup.kill", os.O_WRONLY | os.O_CLOEXEC)

    def limit(self, limits: CgroupLimits) -> None:
        """Set the limits. The group has the controllers: see `delegate`.

        Raises:
            OSError: the kernel refused a limit.
        """
        text_by_file = {
            "memory.max": str(limits.memory_bytes),
            "memory.oom.group": "1",  # the kernel kills the whole session, and no other
            "pids.max": str(limits.tasks),
        }
        if limits.cpu_percent:
            quota_us = limits.cpu_percent * _CPU_PERIOD_US // 100
            text_by_file["cpu.max"] = f"{quota_us} {_CPU_PERIOD_US}"
        for file, text in text_by_file.items():
            (self._path / file).write_text(text)
        swap = self._path / "memory.swap.max"
        if swap.exists():  # a kernel may not account for swap
            swap.write_text("0")

    def enter(self) -> None:
        """Move the calling process into the cgroup; its later children start there."""
        (self._path / "cgroup.procs").write_text("0")

    def label(self, text: str) -> None:
        """Add a label that every account can read: an empty group inside."""
        self._open_up()
        (self._path / text).mkdir()

    def labels(self) -> list[str]:
        """Return the labels that `label` added."""
        with suppress(OSError):
            return [path.name for path in self._path.iterdir() if path.is_dir()]
        return []

    def tasks(self) -> int:
        """Return the number of threads."""
        return sum(self._read(file).count("\n") for file in ("cgroup.threads", "tasks"))  # v2, v1

    def was_refused_tasks(self) -> bool:
        """Return whether its own limit has refused a process or thread."""
        return _event(self._read("pids.events"), "max") > 0

    def was_killed_for_memory(self) -> bool:
        """Return whether the kernel has killed a process in it at its own memory limit."""
        return _event(self._read("memory.events"), "oom_kill") > 0

    def file_memory_bytes(self) -> int:
        """Return the memory that its files take, in bytes: tmpfs and shared memory."""
        return _event(self._read("memory.stat"), "shmem")

    def end(self) -> None:
        """Kill all its processes, and remove the cgroup. Returns when the last process has ended.

        Raises:
            TimeoutError: a process could not be killed within 5 s.
        """
        give_up_at = time.monotonic() + _END_S
        try:
            while not self._is_removed():
                if time.monotonic() > give_up_at:
                    raise TimeoutError(f"{self._path} still has processes")
                select.select([], [], [], 0.005)
        finally:
            if self._kill_fd >= 0:
                os.close(self._kill_fd)
                self._kill_fd = -1

    def _is_removed(self) -> bool:
        """Kill all its processes; return whether the cgroup is removed."""
        self._kill()
        with suppress(OSError):
            self._open_up()
            # Without Landlock, its processes may have made groups of their own inside.
            for path in sorted((p for p in self._path.rglob("*") if p.is_dir()), reverse=True):
                inner = Leaf(path.parent, path.name)
                path.chmod(0o755)
                inner._kill()
                path.rmdir()
            self._path.rmdir()
        try:
            self._path.lstat()
        except FileNotFoundError:
            return True
        except OSError:  # made unreadable again, by a process that has not ended yet
            pass
        return False

    def _open_up(self, *files: str) -> None:
        """Restore the read permissions that a server took away: all accounts see its processes."""
        for path in (self._path.parent, self._path):
            with suppress(OSError):
                path.chmod(0o755)
        for file in files:
            with suppress(OSError):
                (self._path / file).chmod(0o644)

    def _kill(self) -> None:
        try:
            if self._kill_fd >= 0:
                os.write(self._kill_fd, b"1")
            else:
                (self._path / "cgroup.kill").write_text("1")
        except OSError:
            for pid in self._read("cgroup.procs").split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)

    def _read(self, file: str) -> str:
        """Return the text of a file; "" if it does not exist.

        It is opened anew each time: v1 shows an open `tasks` or `cgroup.procs` as it was, for as
        long as it is read once a second (cgroup_pidlist_start() in kernel/cgroup/cgroup-v1.c).
        """
        for _ in range(2):
            with suppress(OSError):
                return (self._path / file).read_text()
            self._open_up(file)
        return ""


def _found(pattern: str, root: Path, file: str = "") -> Path | None:
    found = re.search(pattern, Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    return root / found[1].lstrip("/") / file if found else None


def _event(text: str, name: str) -> int:
    """Return one counter of a flat keyed file; 0 if the file does not have it."""
    for line in text.splitlines():
        key, _, count = line.partition(" ")
        if key == name:
            return int(count)
    return 0
