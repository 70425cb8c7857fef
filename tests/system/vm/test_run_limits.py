"""Limits of runs of code, on a kernel of its own: cgroup v2 with all controllers."""

from typing import Any

from tests.shared import pace
from tests.system.bed.vm import call_in_vm
from tests.system.support.tiers import on_release, only_in_test_all
from tests.system.vm.vm_results import complaints, seen_by

MIB = 1024**2
SERVER = """
[mcp_servers.python]
python = "/usr/bin/python3"
[mcp_servers.python.mcpwrap]
runs = { memory = "128M", tasks = 20, cpu = "50%", seconds = 30, at_once = 2 }
"""
LIMITS = {  # with 32 MiB and a task for the run supervisor
    "memory.max": str(160 * MIB),
    "memory.swap.max": "0",
    "pids.max": "21",
    "cpu.max": "50000 100000",
}
OUT_OF_MEMORY = "memory: 128 MiB reached (runs.memory): read the file in chunks, or keep less in "
TIMEOUT = "timeout: 2 s reached (the argument `timeout`, at most 30 by runs.seconds): raise it, or"
MADE = 19  # of 20 tasks: without the first process


@only_in_test_all("an emulated kernel needs two minutes or more for it")
@on_release("trixie")
def test_with_controllers_a_run_is_held_to_its_own_limits(suite: str) -> None:
    call = ("runs_story", "play", pace.WAIT_S)
    result = call_in_vm(suite, call, {"/etc/mcpwrap/config.toml": SERVER})
    seen = seen_by(result)
    print(*(f"{name}: {found}" for name, found in seen.items()), sep="\n")
    assert seen["limits"] == LIMITS
    _expect_memory(seen)
    _expect_tasks(seen)
    _expect_processor_time(seen)
    assert seen["small"]["stdout"] == seen["small again"]["stdout"] == "1\n"
    assert seen["before"] == seen["after"]  # worker and server are the same processes
    assert seen["end"] == [0, ""]
    assert complaints(result) == []


def _expect_memory(seen: dict[str, Any]) -> None:
    for name in ("memory", "too much memory"):
        assert (seen[name]["ending"], seen[name]["exit_code"]) == ("memory", 137)
        assert seen[name]["error"].startswith(OUT_OF_MEMORY)
        assert 120 * MIB < seen[name]["peak_memory"] <= 160 * MIB
    assert seen["memory"]["stdout"] == "begun\n"  # what was written before is kept
    beside = seen["beside memory"]
    assert (beside["ending"], beside["stdout"]) == ("exit", "undisturbed\n")
    assert beside["duration_ms"] > seen["memory"]["duration_ms"]
    # A child is not the run: its parent is told by the exit status.
    child = seen["memory of a child"]
    assert (child["ending"], child["value"]) == ("exit", "-9")
    # The twins: less memory, and the same without the directive.
    assert seen["much memory"]["value"] == str(90 * MIB)
    assert 90 * MIB < seen["much memory"]["peak_memory"] < 128 * MIB
    assert seen["small"]["peak_memory"] < 40 * MIB
    assert seen["too much memory, without"]["value"] == str(200 * MIB)


def _expect_tasks(seen: dict[str, Any]) -> None:
    made = {name: _pair(each["value"]) for name, each in seen.items() if name.startswith("tasks")}
    assert made["tasks"][0] == MADE
    assert made["tasks, by TasksMax alone"] == (MADE, 1)  # refused by the control group, once
    assert made["tasks, without"] == (100, 0)  # the twin
    assert seen["fork bomb"]["ending"] == "timeout"
    assert seen["fork bomb"]["error"].startswith(TIMEOUT)


def _pair(value: str) -> tuple[int, int]:
    made, refused = value.strip("()").split(", ")
    return int(made), int(refused)


def _expect_processor_time(seen: dict[str, Any]) -> None:
    assert len(seen["processor"]) == 2
    for each in seen["processor"]:  # at the same time: the quota is of each run
        assert 0.35 < _share(each) < 0.65
    assert _share(seen["processor, without"]) > 0.8  # the twin


def _share(result: dict[str, Any]) -> float:
    return float(result["cpu_ms"] / result["duration_ms"])
