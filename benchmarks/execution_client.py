"""Times of `print(1)` in several ways, in turns. RUNS AS ROOT inside the machine.

The standard library alone. Its input is a JSON object: `agent`, `server`, `slots` (the accounts of
its run slots), `rounds`, `calls` (of those back to back) and `commands`: the words of a command by
its label, and whether the agent starts it. Each round visits all ways once, in another order.
Prints the milliseconds by label. Each output is checked.
"""

import json
import os
import pwd
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

Json = dict[str, Any]
CODE, PRINTED = "print(1)", "1\n"
SETTLE_S = 0.08  # what the one before left to clear away
WAIT_S = 20.0
IN_FLIGHT = 8  # calls, where all slots are in use


def main() -> None:
    """Measure, and print the result as JSON."""
    plan = json.load(sys.stdin)
    slots = RunSlots(plan["slots"])
    found: dict[str, list[float]] = defaultdict(list)
    with Session(plan["agent"], plan["server"]) as session:
        session.call()
        ways = _ways(plan, session, slots, found)
        for number in range(-1, plan["rounds"]):
            order = list(ways)
            random.shuffle(order)
            for label in order:
                before, way = ways[label]
                before()
                time.sleep(SETTLE_S)
                found[label].append(timed_ms(way))
                if number < 0:  # what is loaded at the first time
                    found.clear()
        slots.await_warm()
        found["back to back"] = [timed_ms(session.call) for _ in range(plan["calls"])]
        found["in flight"] = [timed_ms(lambda: _in_flight(session, plan["calls"]))]
    print(json.dumps(found))


def _ways(
    plan: Json, session: "Session", slots: "RunSlots", found: dict[str, list[float]]
) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Return by label what is done before, and what is timed."""

    def warm() -> None:
        found["interpreter"].append(session.call()["duration_ms"])

    def whole_session() -> None:
        with Session(plan["agent"], plan["server"]) as new:
            new.call()

    ways: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "warm": (slots.await_warm, warm),
        "cold": (slots.stop, session.call),
        "session": (slots.await_warm, whole_session),
    }
    for label, (is_agents, argv) in plan["commands"].items():
        account = plan["agent"] if is_agents else "root"
        ways[label] = (slots.await_warm, partial(spawn, account, argv))
    return ways


def _in_flight(session: "Session", calls: int) -> None:
    sent = min(calls, IN_FLIGHT)
    for _ in range(sent):
        session.send_call()
    for _ in range(calls):
        session.any_result()
        if sent < calls:
            session.send_call()
            sent += 1


class Session:
    """Session of an agent with the Python server."""

    def __init__(self, agent: str, server: str) -> None:
        argv = ["mcpwrap-connect", server]
        self._stub = _started(agent, argv)
        self._last_id = 0

    def __enter__(self) -> "Session":
        version = {"protocolVersion": "2025-06-18", "capabilities": {}}
        self._request("initialize", version | {"clientInfo": {"name": "bench", "version": "1"}})
        self._receive()
        self._send({"method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        self._stub.communicate()

    def call(self) -> Json:
        """Have the code executed; return the structured result."""
        self.send_call()
        return self.any_result()

    def send_call(self) -> None:
        """Send a call."""
        self._request("tools/call", {"name": "run_python", "arguments": {"code": CODE}})

    def any_result(self) -> Json:
        """Return the structured result of the call that is answered next."""
        response = self._receive()
        result: Json = response.get("result", {}).get("structuredContent", {})
        if result.get("stdout") != PRINTED:
            raise RuntimeError(response)
        return result

    def _request(self, method: str, params: Json) -> None:
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})

    def _send(self, message: Json) -> None:
        assert self._stub.stdin
        self._stub.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        self._stub.stdin.flush()

    def _receive(self) -> Json:
        assert self._stub.stdout
        message: Json = json.loads(self._stub.stdout.readline())
        return message


class RunSlots:
    """Run slots of the server, by the accounts of their supervisors."""

    def __init__(self, accounts: list[str]) -> None:
        self._uids = {pwd.getpwnam(name).pw_uid for name in accounts}
        self._units = [f"mcpwrap-job@{name.removeprefix('mcpj-')}.service" for name in accounts]

    def await_warm(self) -> None:
        """Wait until a supervisor that was started in advance waits for its request."""
        give_up_at_s = time.monotonic() + WAIT_S
        before: set[str] = set()
        while not (before & (now := self._sleeping())):
            if time.monotonic() > give_up_at_s:
                raise RuntimeError("no run slot was started in advance")
            before = now
            time.sleep(0.05)  # one that has just served a run has ended by then

    def stop(self) -> None:
        """Stop all supervisors. The worker starts none until the next run."""
        self.await_warm()
        time.sleep(1.1)  # the worker starts one again that ends within a second
        subprocess.run(["systemctl", "--quiet", "stop", *self._units], check=True)

    def _sleeping(self) -> set[str]:
        """Return the PIDs of supervisors that wait."""
        found = set()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                is_slots = folder.stat().st_uid in self._uids
                if is_slots and "\nState:\tS" in (folder / "status").read_text():
                    found.add(folder.name)
            except OSError:  # it has ended
                continue
        return found


def spawn(account: str, argv: list[str]) -> None:
    """Run a command, which must print what the code prints."""
    process = _started(account, argv)
    printed = process.communicate()[0]
    if printed != PRINTED.encode() or process.returncode:
        raise RuntimeError(f"{argv} ended with {process.returncode} and printed {printed!r}")


def _started(account: str, argv: list[str]) -> subprocess.Popen[bytes]:
    """Start a command as this account, with pipes."""
    entry = pwd.getpwnam(account)
    return subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=entry.pw_dir,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": entry.pw_dir, "LANG": "C.UTF-8"},
        user=entry.pw_uid, group=entry.pw_gid,
        extra_groups=os.getgrouplist(account, entry.pw_gid),
    )  # fmt: skip


def timed_ms(work: Callable[[], object]) -> float:
    """Return how long this takes, in milliseconds."""
    since = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - since)


if __name__ == "__main__":
    main()
