"""Resource usage of a run, from the cgroup of its unit.

The unit mounts its own cgroup, read-only: that of cgroup v2 at /sys/fs/cgroup, or those of v1 in
the folders `memory` and `cpuacct` there. Where a file does not exist, the usage is 0 or comes from
getrusage(2). Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst.
"""

import resource
import time
from contextlib import suppress

CGROUP = "/sys/fs/cgroup"
_NS_PER_US, _US_PER_S = 1000, 1_000_000


class ResourceUsage:
    """Resource usage of a run, whose first process is started after this object was made."""

    def __init__(self, cgroup: str) -> None:
        self._cgroup = cgroup
        self.began_at_s = time.monotonic()
        self._cpu_us_before = self._cpu_us()
        self._kills_before = self._kills_for_memory()
        self.duration_ms = 0
        self.cpu_ms = 0  # of all processors together

    def ran_out_of_memory(self) -> bool:
        """Return whether the kernel has killed a process at the unit's limit of memory."""
        return self._kills_for_memory() > self._kills_before

    def peak_memory_bytes(self) -> int:
        """Return the highest memory usage, with files in memory; 0 if the kernel does not tell."""
        for file in ("memory.peak", "memory/memory.max_usage_in_bytes"):
            with suppress(OSError, ValueError):
                return int(self._read(file))
        return 0

    def stop(self) -> None:
        """Measure both times, when all processes of the run have ended.

        The duration begins before and ends after the processor time, so that no run of one thread
        has more of that.
        """
        self.cpu_ms = max(0, self._cpu_us() - self._cpu_us_before) // 1000
        self.duration_ms = int((time.monotonic() - self.began_at_s) * 1000)

    def _cpu_us(self) -> int:
        """Return the processor time of the unit without that of this process, the supervisor."""
        own_us = _us(resource.RUSAGE_SELF)  # first: the kernel then updates the counters below
        with suppress(OSError, ValueError, KeyError):
            return self._counters("cpu.stat")["usage_usec"] - own_us
        with suppress(OSError, ValueError):
            return int(self._read("cpuacct/cpuacct.usage")) // _NS_PER_US - own_us
        return _us(resource.RUSAGE_CHILDREN)

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


def _us(processes: int) -> int:
    used = resource.getrusage(processes)
    return int((used.ru_utime + used.ru_stime) * _US_PER_S)
