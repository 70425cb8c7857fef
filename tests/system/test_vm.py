"""What needs a kernel of its own: cgroup v2 with all its controllers, whatever the host has."""

import json
from pathlib import Path

import pytest

from tests.system.bed.machine import complaint
from tests.system.bed.session import PROBE
from tests.system.bed.vm import run_in_vm

SERVER = """
[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.probe.mcpwrap]
limits = { memory = "64M", tasks = 20, cpu = "50%", sessions = 3 }
"""
STORY = Path(__file__).with_name("limits_story.py").read_text()
DRIFT_STORY = Path(__file__).with_name("drift_story.py").read_text()
MEMORY = "mcpwrap-connect: the session has used up its 64 MiB (limits, memory)"
TASKS = "mcpwrap-connect: the session has used up its 20 processes and threads (limits, tasks)"
DRIFT_STORY_S = 240  # it looks five times; a busy host needed over 100
MORE = "mcpwrap clients shows them, and why"
SHARED = "mcpwrap-connect: the session has filled /dev/shm of 64 MiB"


@pytest.mark.timeout(480)  # the kernel is emulated, and its root may have to be built
def test_with_controllers_each_session_has_its_own_limits() -> None:
    result = run_in_vm(
        "trixie", STORY, {"/opt/probe.py": PROBE, "/etc/mcpwrap/config.toml": SERVER}
    )
    assert result.status == 0, result.output
    seen = json.loads(result.output.splitlines()[-1])
    assert seen["ceilings"] == {
        "memory.max": str(64 * 1024**2),
        "memory.swap.max": "0",
        "pids.max": "20",
        "cpu.max": "50000 100000",
    }
    assert seen["processes"] == [137, TASKS, "kept"]
    assert seen["memory"] == [137, MEMORY, "kept"]
    assert seen["memory of a child"] == [137, MEMORY, "kept"]  # the whole session goes
    assert seen["/dev/shm"][:1] == [137]
    assert seen["/dev/shm"][1] in {SHARED, MEMORY}  # what it wrote there is its memory too
    assert seen["/dev/shm"][2] == "kept"
    assert seen["share of a processor"] < 0.7
    assert "for all sessions together" not in seen["status"]
    assert seen["end"] == [0, ""]
    announced = ("OOM killer", "oom-kill")
    complaints = [text for entry in result.journal if (text := complaint(entry))]
    assert [text for text in complaints if not any(word in text for word in announced)] == []


@pytest.mark.timeout(420)
def test_alice_is_told_once_of_a_server_that_is_not_wrapped() -> None:
    """A user's own service manager wants cgroup v2, or none of the host's."""
    files = {"/opt/probe.py": PROBE, "/etc/mcpwrap/config.toml": SERVER}
    result = run_in_vm("trixie", DRIFT_STORY, files, story_s=DRIFT_STORY_S)
    assert result.status == 0, result.output
    seen = json.loads(result.output.splitlines()[-1])
    assert seen["enabled"] == ["disabled", "disabled"]  # nobody has it who did not ask for it
    assert seen["when it is enabled"] == _told("a server is", "old (claude-code): raw")
    assert seen["is quiet of what is wrapped"]
    both = ("old (claude-code): raw", "added (claude-code): raw")
    assert seen["raw again, and added"] == _told("2 servers are", *both)
    assert seen["in a new folder"] == _told("a server is", "other (cursor): raw")
    assert seen["in an extension"] == _told("a server is", "brought (gemini): raw")
    assert seen["shown"] == 4  # each once
    assert seen["paths"] == ["active"] * 29  # none has failed of being busy
    assert seen["paths when it is disabled"] == []
    assert [text for entry in result.journal if (text := complaint(entry))] == []


def _told(what: str, *lines: str) -> list[str]:
    summary, body = f"mcpwrap: {what} not wrapped", "\n".join([*lines, MORE])
    return ["--app-name=mcpwrap", "--", summary, body]
