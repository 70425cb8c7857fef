"""Agents that call without pause, and kills of their processes. Runs inside the machine."""

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SEEN = Path("/var/lib/mcpwrap/state/probe/seen")  # the calls that reached the server
AGENTS = 16
# The gate and the wrapper take all sessions with them: they are killed in each round but three.
ROUNDS_BETWEEN = 4
POLL_S = 0.02


def call_many(count: int) -> int:
    """Call the probe this often in one session; return the number of answered calls.

    In turn it is a call of `drop`, one of `run` with an even number, and one with an odd number.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(["mcpwrap-connect", "probe"], stdin=pipe, stdout=pipe) as stub:
        assert stub.stdin
        assert stub.stdout
        threading.Thread(target=_send_many, args=(stub.stdin, count)).start()
        answered = sum(bool(stub.stdout.readline()) for _ in range(count))
        stub.stdin.close()
    return answered


def _send_many(stdin: Any, count: int) -> None:
    for n in range(count):
        turn, number = n % 3, 2 * n + (n % 3 == 2)
        arguments = {"code": "pass", "called": f"number {number}"}
        stdin.write(_line(n, "run" if turn else "drop", arguments))
    stdin.flush()


def _line(number: object, tool: str, arguments: dict[str, str]) -> bytes:
    params = {"name": tool, "arguments": arguments}
    call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(call).encode() + b"\n"


class Agents:
    """Sessions, restarted after each end, until `stop` exists. Calls have names."""

    def __init__(self, story: str, stop: str) -> None:
        self._story = story
        self._stop = Path(stop)
        self.answers: dict[str, str] = {}

    def run(self) -> None:
        """Let all agents call until they are stopped; raise the first error of one of them."""
        with ThreadPoolExecutor(AGENTS) as pool:
            list(pool.map(self._agent, range(AGENTS)))

    def _agent(self, number: int) -> None:
        n, pipe = 0, subprocess.PIPE
        while not self._stop.exists():
            stub = subprocess.Popen(
                ["mcpwrap-connect", "probe"], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
            )
            try:
                answered = True
                while answered and not self._stop.exists():
                    n += 1
                    answered = self._call(stub, f"{self._story}-{number}-{n}")
            except BrokenPipeError:
                pass
            stub.kill()
            stub.communicate()

    def _call(self, stub: subprocess.Popen[bytes], name: str) -> bool:
        assert stub.stdin
        assert stub.stdout
        code = f"open('seen', 'a').write('{name} ')"
        tool = "drop" if name.endswith("0") else "run"
        stub.stdin.write(_line(name, tool, {"code": code, "called": name}))
        stub.stdin.flush()
        answer = json.loads(stub.stdout.readline() or "{}")
        if not answer or "error" in answer:  # the reason why no session began, or why it ended
            return False
        text = answer["result"].get("content", [{}])[0].get("text", "")
        self.answers[name] = text or "done"
        return True


def call_until(story: str, stop: str) -> dict[str, str]:
    """Have agents call until the file `stop` exists; return the answer to each call."""
    agents = Agents(story, stop)
    agents.run()
    return agents.answers


def kill(rounds: int, within_s: float) -> dict[str, int]:
    """Kill each part in turn, a random process of each; return how often each was killed.

    Between two kills, calls reach the server. The whole gate is last: it restarts.
    """
    killed: dict[str, int] = {}
    for turn in range(rounds):
        for part, find in _parts():
            if part not in {"wrapper", "gate"} or turn % ROUNDS_BETWEEN == ROUNDS_BETWEEN - 1:
                _kill_one(find, within_s)
                killed[part] = killed.get(part, 0) + 1
                await_calls(1, within_s)
    await_calls(100, within_s)
    return killed


def _kill_one(find: Callable[[], list[int]], within_s: float) -> None:
    """Kill one of these, as soon as there is one."""
    give_up_at = time.monotonic() + within_s
    while not _is_killed(find()):
        if time.monotonic() > give_up_at:
            raise TimeoutError("nothing to kill")
        time.sleep(POLL_S)


def _is_killed(pids: list[int]) -> bool:
    """Kill one of these; return whether there was one."""
    try:
        os.kill(random.choice(pids), signal.SIGKILL)
    except (ProcessLookupError, IndexError):
        return False
    return True


def _parts() -> Iterator[tuple[str, Callable[[], list[int]]]]:
    yield "stub", lambda: _pids("-f", "mcpwrap-connect probe")
    yield "session", lambda: [pid for gate in _main_pid("gate") for pid in _pids("-P", str(gate))]
    yield "server", lambda: _pids("-f", "/opt/probe.py")
    yield "wrapper", lambda: _main_pid("@probe")
    yield "gate", lambda: _main_pid("gate")


def _pids(*how: str) -> list[int]:
    found = subprocess.run(["pgrep", *how], stdout=subprocess.PIPE, text=True).stdout
    return [int(pid) for pid in found.split()]


def _main_pid(unit: str) -> list[int]:
    name = f"mcpwrap{unit}" if unit.startswith("@") else f"mcpwrap-{unit}"
    show = ["systemctl", "show", "-P", "MainPID", name]
    found = int(subprocess.run(show, stdout=subprocess.PIPE, text=True).stdout)
    return [found] if found else []


def await_calls(count: int, within_s: float) -> None:
    """Wait until this many more calls have reached the server."""
    give_up_at = time.monotonic() + within_s
    wanted = _calls() + count
    while _calls() < wanted:
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"{wanted - _calls()} calls are missing")
        time.sleep(POLL_S)


def _calls() -> int:
    return SEEN.read_text().count(" ") if SEEN.exists() else 0


def fill(path: str) -> str:
    """Write to a file until the disk is full; return the error."""
    try:
        with Path(path).open("wb", 0) as file:
            while True:
                file.write(bytes(4096))
    except OSError as error:
        return os.strerror(error.errno or 0)


def records() -> list[dict[str, Any]]:
    """Return all records of the audit, without unfinished lines."""
    found = []
    for path in sorted(Path("/var/log/mcpwrap/audit").glob("*/*-*.jsonl")):
        with path.open(newline="\n") as file:
            found += [json.loads(line) for line in file if line.endswith("}\n")]
    return found
