"""Limits of a session on a machine with cgroup v2 and all controllers. Runs inside it, as root.

Each of some sessions takes too much, beside one that goes on.
"""

import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

# Code that a session of the probe runs, by functions of `greed.py`.
TAKES = {
    "processes": "fork()",
    "memory": "eat()",
    "memory of a child": "eat_by_child()",
    "/dev/shm": "fill('/dev/shm')",
}
WRITE = "import os; open(os.environ['TMPDIR'] + '/mine', 'w').write('kept')"
READ = "import os; result = open(os.environ['TMPDIR'] + '/mine').read()"
SPIN_S = 3.0


def greedily(call: str) -> str:
    """Return the code by which the probe calls a function of `greed.py`."""
    return f"from tests.system.guest import greed; result = greed.{call}"


def sh(command: str) -> str:
    """Run a shell command, which must succeed, and return its output."""
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout


class Session:
    """Session of alice with the probe."""

    def __init__(self) -> None:
        argv = ["runuser", "-u", "alice", "--", "mcpwrap-connect", "probe"]
        self.stub = subprocess.Popen(argv, stdin=-1, stdout=-1, stderr=-1, text=True)
        self.ids = itertools.count(1)
        self.ask("result = 1")

    def send(self, code: str) -> None:
        """Send a code for the probe to run."""
        params = {"name": "run", "arguments": {"code": code}}
        call = {"jsonrpc": "2.0", "id": next(self.ids), "method": "tools/call", "params": params}
        print(json.dumps(call), file=self.stub.stdin, flush=True)

    def ask(self, code: str) -> Any:
        """Send a code, and return the value of `result`."""
        self.send(code)
        assert self.stub.stdout
        line = self.stub.stdout.readline()
        assert line, self.end(60)
        return json.loads(line)["result"]["told"]

    def end(self, within_s: float) -> list[Any]:
        """Close the session; return the status and standard error of its stub."""
        err = self.stub.communicate(timeout=within_s)[1]
        return [self.stub.returncode, err.strip()]


def taken(call: str, other: Session, within_s: float) -> list[Any]:
    """Return how an excessive session ended, and what the other session still has."""
    session = Session()
    session.send(greedily(call))
    return [*session.end(within_s), other.ask(READ)]


def ceilings() -> dict[str, str]:
    """Return the limits of a session in the kernel."""
    group = sh("systemctl show -P ControlGroup mcpwrap@probe.service").strip()
    leaf = next(Path(f"/sys/fs/cgroup{group}").glob("s-*/agent-*")).parent
    files = ("memory.max", "memory.swap.max", "pids.max", "cpu.max")
    return {file: (leaf / file).read_text().strip() for file in files}


def begin() -> Session:
    """Make alice's account and open the session that continues."""
    sh("useradd -m -s /bin/bash -G mcpwrap alice")
    sh("mcpwrap apply")
    session = Session()
    session.ask(WRITE)
    return session


def play(takes: list[str], within_s: float) -> dict[str, Any]:
    """Exceed each of these limits, a session each; return the observations."""
    other = begin()
    seen: dict[str, Any] = {what: taken(TAKES[what], other, within_s) for what in takes}
    seen["ceilings"] = ceilings()
    return seen | {"end": other.end(within_s)}


def play_all(within_s: float) -> dict[str, Any]:
    """Exceed every limit, and check the processor time and the status too."""
    other = begin()
    seen: dict[str, Any] = {what: taken(TAKES[what], other, within_s) for what in TAKES}
    seen["share of a processor"] = other.ask(greedily(f"share_of_a_processor({SPIN_S})"))
    seen["ceilings"] = ceilings()
    seen["status"] = sh("mcpwrap status probe --json")
    return seen | {"end": other.end(within_s)}
