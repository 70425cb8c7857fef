"""Resource usage of a run, from the cgroup of its unit.

The unit mounts its own cgroup, read-only: that of cgroup v2 at /sys/fs/cgroup, or those of v1 in
the folders `memory` and `cpuacct` there. Where a file does not exist, the usage is 0 or comes from
getrusage(2). Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst.
"""

import resource
from contextlib import suppress

CGROUP = "/sys/fs/cgroup"
_US_PER_MS, _NS_PER_MS = 1000, 1_000_000


class ResourceUsage:
    """Usage of the unit: processor time and kills since this object was made, and peak memory."""

    def __init__(self, cgroup: str = CGROUP) -> None:
        self._cgroup = cgroup
        self._cpu_ms_before = 0
        self._cpu_ms_before = self.cpu_ms()
        self._kills_before = self._kills_for_memory()

    def ran_out_of_memory(self) -> bool:
        """Return whether the kernel has killed a process at the unit's limit of memory."""
        return self._kills_for_memory() > self._kills_before

    def peak_memory_bytes(self) -> int:
        """Return the highest memory usage, with files in memory; 0 if the kernel does not tell."""
        for file in ("memory.peak", "memory/memory.max_usage_in_bytes"):
            with suppress(OSError, ValueError):
                return int(self._read(file))
        return 0

    def cpu_ms(self) -> int:
        """Return the processor time, of all processors together."""
        return self._cpu_ms() - self._cpu_ms_before

    def _cpu_ms(self) -> int:
        with suppress(OSError, ValueError, KeyError):
            return self._counters("cpu.stat")["usage_usec"] // _US_PER_MS
        with suppress(OSError, ValueError):
            return int(self._read("cpuacct/cpuacct.usage")) // _NS_PER_MS
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return int((children.ru_utime + children.ru_stime) * 1000)

    def _kills_for_memory(self) -> int:
        for file in ("memory.events", "memory/memory.oom_control"):
            with suppress(OSError, ValueError, KeyError):
                return self._counters(file)["oom_kill"]
        return 0

    def _counters(self, file: str) -> dict[str, int]:
        lines = (line.split(" ") for line in self._read(file).splitlines())
        return {name: int(count) for name, count in lines}

    def _read(self, file: str) -> str:
        with open(f"{self._cgroup}/{file}", encoding="ascii") as opened:
            return opened.read()
