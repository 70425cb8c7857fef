"""Recovery time of calls after a kill of the gate or a supervisor. Runs in a machine as root."""

import json
import os
import signal
import subprocess
import threading
import time
from typing import IO

CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "run", "arguments": {"code": "result = 1"}},
}
LOOK_EVERY_S = 0.01
ANSWERS_BEFORE = 20


class Agents:
    """Agents of alice that call a server without pause, and reconnect after a disconnection."""

    def __init__(self, server: str, count: int) -> None:
        self._argv = ["runuser", "-u", "alice", "--", "mcpwrap-connect", server]
        self._is_over = threading.Event()
        self._answered: list[tuple[float, float]] = []  # of the start of the session, and of now
        self._threads = [threading.Thread(target=self._call) for _ in range(count)]

    def __enter__(self) -> "Agents":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _call(self) -> None:
        while not self._is_over.is_set():
            began_s = time.monotonic()
            pipe = subprocess.PIPE
            with subprocess.Popen(
                self._argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            ) as stub:
                assert stub.stdin
                assert stub.stdout
                try:
                    self._use(stub.stdin, stub.stdout, began_s)
                except BrokenPipeError:
                    stub.kill()

    def _use(self, stdin: IO[str], stdout: IO[str], began_s: float) -> None:
        while not self._is_over.is_set():
            print(json.dumps(CALL), file=stdin, flush=True)
            if "result" not in json.loads(stdout.readline() or "{}"):
                return  # the reason why no session began, or why it ended
            self._answered.append((began_s, time.monotonic()))

    def await_answers(self, since_s: float, count: int, within_s: float) -> float:
        """Wait for this many answers in sessions that began since then; return the time of the
        last.

        Raises:
            TimeoutError: they do not come.
        """
        give_up_at = time.monotonic() + within_s
        while True:
            found = [at_s for began_s, at_s in list(self._answered) if began_s >= since_s]
            if len(found) >= count:
                return found[count - 1]
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"{len(found)} answers in {within_s} s")
            time.sleep(LOOK_EVERY_S)


def after_kill(unit: str, server: str, agents: int, within_s: float) -> float:
    """Kill the main process of a unit while agents call; return the seconds until an answer."""
    with Agents(server, agents) as calling:
        calling.await_answers(0, ANSWERS_BEFORE * agents, within_s)
        show = ["systemctl", "show", "-P", "MainPID", unit]
        pid = int(subprocess.run(show, capture_output=True, text=True, check=True).stdout)
        killed_s = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        return calling.await_answers(killed_s, 1, within_s) - killed_s
