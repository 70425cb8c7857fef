"""Stories for a kernel of their own: cgroup v2 with all controllers, whatever the host has."""

from collections.abc import Callable
from typing import Any

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.bed.vm import call_in_vm
from tests.system.support.servers import a_server
from tests.system.support.tiers import ON_ONE_RELEASE, on_release, only_in_test_all
from tests.system.vm.vm_results import complaints, seen_by

ON_THE_NEWEST = on_release("trixie")
SERVER = a_server("probe", 'limits = { memory = "64M", tasks = 20, cpu = "50%", sessions = 3 }')
FILES = {"/etc/mcpwrap/config.toml": SERVER}
CEILINGS = {
    "memory.max": str(64 * 1024**2),
    "memory.swap.max": "0",
    "pids.max": "20",
    "cpu.max": "50000 100000",
}
ENDED = "mcpwrap-connect: the server ended: the session has used up its"
MEMORY = f"{ENDED} 64 MiB (limits, memory) [E-WRAPPER-LIMIT-MEMORY]"
TASKS = f"{ENDED} 20 processes and threads (limits, tasks) [E-WRAPPER-LIMIT-TASKS]"
MORE = "mcpwrap clients lists them, and why"
SHARED = "mcpwrap-connect: the session has filled /dev/shm of 64 MiB [E-WRAPPER-LIMIT-DISK]"


@ON_THE_NEWEST
def test_with_controllers_a_session_is_held_to_its_own_limits(suite: str) -> None:
    """The main cases, in the time that an emulated kernel needs for them."""
    call = ("limits_story", "play", ["processes", "memory"], pace.WAIT_S)
    result = call_in_vm(suite, call, FILES)
    seen = seen_by(result)
    assert seen["ceilings"] == CEILINGS
    assert seen["processes"] == [137, TASKS, "kept"]
    assert seen["memory"] == [137, MEMORY, "kept"]
    assert seen["end"] == [0, ""]  # the twin: the one beside them
    assert complaints(result) == []


@only_in_test_all("more ways to take too much, which an emulated kernel needs minutes for")
@ON_THE_NEWEST
def test_with_controllers_each_session_has_its_own_limits(suite: str) -> None:
    result = call_in_vm(suite, ("limits_story", "play_all", pace.WAIT_S), FILES)
    seen = seen_by(result)
    assert seen["ceilings"] == CEILINGS
    assert seen["processes"] == [137, TASKS, "kept"]
    assert seen["memory"] == [137, MEMORY, "kept"]
    assert seen["memory of a child"] == [137, MEMORY, "kept"]  # the whole session goes
    assert seen["/dev/shm"][:1] == [137]
    assert seen["/dev/shm"][1] in {SHARED, MEMORY}  # its files there are its memory too
    assert seen["/dev/shm"][2] == "kept"
    assert seen["share of a processor"] < 0.7
    assert "for all sessions together" not in seen["status"]
    assert seen["end"] == [0, ""]
    assert complaints(result) == []


@ON_ONE_RELEASE
def test_alice_is_told_once_by_a_service_manager_of_her_own(boot: Callable[..., Machine]) -> None:
    """A user's own service manager needs cgroup v2, or none of the host's; no controllers."""
    machine = boot(Profile.BPF)
    machine.configure(SERVER)
    told_of_drift(machine.call("drift_story", "play", pace.WAIT_S))


@only_in_test_all("the same story on an emulated kernel: the one above has it in a container")
@ON_THE_NEWEST
def test_alice_is_told_once_of_a_server_that_is_not_wrapped(suite: str) -> None:
    call = ("drift_story", "play", pace.WAIT_S)
    result = call_in_vm(suite, call, FILES)
    told_of_drift(seen_by(result))
    assert complaints(result) == []


def told_of_drift(seen: dict[str, Any]) -> None:
    print("failed looks:", *seen["failed looks"], sep="\n")
    assert seen["enabled"] == ["disabled", "disabled"]  # it runs only for accounts that enabled it
    assert seen["when it is enabled"] == _told("a server is", "old (claude-code): raw")
    assert seen["is quiet of what is wrapped"]
    both = ("old (claude-code): raw", "added (claude-code): raw")
    assert seen["raw again, and added"] == _told("2 servers are", *both)
    assert seen["in a new folder"] == _told("a server is", "other (cursor): raw")
    assert seen["in an extension"] == _told("a server is", "brought (gemini): raw")
    assert seen["shown"] == 4  # each once
    assert seen["paths"] == ["active"] * 29  # none has failed because of the load
    assert seen["paths when it is disabled"] == []


def _told(what: str, *lines: str) -> list[str]:
    summary, body = f"mcpwrap: {what} not wrapped", "\n".join([*lines, MORE])
    return ["--app-name=mcpwrap", "--", summary, body]
