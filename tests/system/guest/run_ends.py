"""Ends of a run before its time, and the time until its last process is gone. Runs as root."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tests.system.guest import run_kills, run_slots
from tests.system.guest.python_agents import PythonAgent
from tests.system.guest.run_load import arguments
from tests.system.guest.run_slots import SlotProcess

_LEAST = 4  # processes of `wait`: supervisor, first process, daemon, tracker of shared memory
_GIVE_UP_S = 60.0
_LOOK_EVERY_S = 0.02
_T = TypeVar("_T")


class Victim:
    """Agent whose run is ended, and the processes of this run."""

    def __init__(self, server: str, *, in_process_of_its_own: bool) -> None:
        self.server = server
        before = {each.namespace for each in run_slots.first_processes(server)}
        known = set(_sessions())
        self.agent = PythonAgent(server)
        self.process: subprocess.Popen[bytes] | None = None
        if in_process_of_its_own:
            call = ["-m", "tests.system.guest.call", "python_agents", "hold"]
            values = json.dumps([server, arguments("wait", 0)])
            self.process = subprocess.Popen([sys.executable, "-B", *call, values])
        else:
            self.agent.begin(arguments("wait", 0))
        processes = _await(lambda: self._started(before))
        self.pids = [each.pid for each in processes]
        [self.first] = [each for each in run_slots.first_processes(server) if each.pid in self.pids]
        [self.session] = set(_sessions()) - known

    def _started(self, before: set[str]) -> list[SlotProcess]:
        """Return the processes of the run, which may have the slot of one that ended meanwhile."""
        found = run_slots.processes(self.server)
        new = {each.namespace for each in run_slots.first_processes(self.server)} - before
        mine = [each for each in found if each.namespace in new]
        return mine if len(mine) >= _LEAST else []


def _cancel(victim: Victim) -> None:
    victim.agent.cancel()


def _close(victim: Victim) -> None:
    victim.agent.close_input()


def _kill_agent(victim: Victim) -> None:
    assert victim.process is not None
    victim.process.kill()
    victim.process.wait()


def _kill_session(victim: Victim) -> None:
    subprocess.run(["mcpwrap", "kill", victim.session], check=True, stdout=subprocess.DEVNULL)


def _panic(victim: Victim) -> None:
    subprocess.run(["mcpwrap", "panic", victim.server], check=True, stdout=subprocess.DEVNULL)


def _kill_worker(_victim: Victim) -> None:
    [pid] = run_kills.workers("")
    os.kill(pid, signal.SIGKILL)


def _kill_server(victim: Victim) -> None:
    os.kill(max(run_kills.servers(victim.server)), signal.SIGKILL)  # of the session begun last


def _kill_supervisor(victim: Victim) -> None:
    os.kill(victim.first.parent, signal.SIGKILL)


def _kill_first_process(victim: Victim) -> None:
    os.kill(victim.first.pid, signal.SIGKILL)


CAUSES: dict[str, Callable[[Victim], None]] = {
    "cancelled": _cancel,
    "closed": _close,
    "agent killed": _kill_agent,
    "session killed": _kill_session,
    "panic": _panic,
    "worker killed": _kill_worker,
    "server killed": _kill_server,
    "supervisor killed": _kill_supervisor,
    "first process killed": _kill_first_process,
}


def ended_by(server: str, cause: str, within_s: float) -> dict[str, Any]:
    """End a run beside another one; return which processes are left in time, and both outcomes."""
    other = PythonAgent(server)
    other.begin(arguments("pause", 1))
    _await(lambda: run_slots.first_processes(server))
    victim = Victim(server, in_process_of_its_own=cause == "agent killed")
    poll, left = select.poll(), {os.pidfd_open(pid): pid for pid in victim.pids}
    for fd in left:
        poll.register(fd, select.POLLIN)
    began_s = time.monotonic()
    CAUSES[cause](victim)
    while left and (wait_s := began_s + within_s - time.monotonic()) > 0:
        for fd, _ in poll.poll(1000 * wait_s):
            poll.unregister(fd)
            del left[fd]
    took_s = time.monotonic() - began_s
    outcomes = {"other": other.outcome()}
    if cause not in ("cancelled", "agent killed"):  # which get no response
        outcomes["victim"] = victim.agent.outcome()
    victim.agent.kill_stub()
    other.close()
    if cause == "panic":
        subprocess.run(["mcpwrap", "resume", server], check=True, stdout=subprocess.DEVNULL)
    return {"took_s": took_s, "left": sorted(left.values()), **outcomes}


def _sessions() -> list[str]:
    listed = subprocess.run(["mcpwrap", "sessions", "--json"], capture_output=True, check=True)
    return [row["session"] for row in json.loads(listed.stdout)]


def _await(look: Callable[[], list[_T]]) -> list[_T]:
    give_up_at = time.monotonic() + _GIVE_UP_S
    while not (found := look()):
        if time.monotonic() > give_up_at:
            raise TimeoutError
        time.sleep(_LOOK_EVERY_S)
    return found
