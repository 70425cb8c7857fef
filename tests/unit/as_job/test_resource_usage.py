"""Resource usage of a run, from the files of cgroup v2 and v1."""

import time
from pathlib import Path

import pytest

from mcpwrap.as_job.resource_usage import ResourceUsage

V2 = {
    "memory.events": "low 0\nmax 3\noom 1\noom_kill {kills}\n",
    "memory.peak": "5000\n",
    "cpu.stat": "usage_usec {cpu_ms}000\nuser_usec 1\n",
}
V1 = {
    "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n",
    "memory/memory.max_usage_in_bytes": "5000\n",
    "cpuacct/cpuacct.usage": "{cpu_ms}000000\n",
}


def write(folder: Path, files: dict[str, str], kills: int, cpu_ms: int) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text.format(kills=kills, cpu_ms=cpu_ms))


@pytest.mark.parametrize("files", [V2, V1])
def test_usage_is_counted_from_the_start(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, files, kills=1, cpu_ms=30)
    usage = ResourceUsage(str(tmp_path))
    usage.stop()
    assert (usage.ran_out_of_memory(), usage.cpu_ms) == (False, 0)
    before_s = time.process_time()
    while time.process_time() < before_s + 0.02:
        pass
    write(tmp_path, files, kills=2, cpu_ms=2030)
    usage.stop()
    assert usage.ran_out_of_memory()
    assert 1000 < usage.cpu_ms <= 1980  # without that of the supervisor, which is the test
    assert usage.duration_ms >= 20
    assert usage.peak_memory_bytes() == 5000


@pytest.mark.parametrize("text", [None, "", "max\n", "oom_kill\n", "\n\n"])
def test_a_missing_or_unknown_file_is_no_usage(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        write(tmp_path, dict.fromkeys([*V2, *V1], text), kills=0, cpu_ms=0)
    usage = ResourceUsage(str(tmp_path))
    assert (usage.ran_out_of_memory(), usage.peak_memory_bytes()) == (False, 0)
    usage.stop()
    assert 0 <= usage.cpu_ms <= usage.duration_ms  # of the children of the tests
