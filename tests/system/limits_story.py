#!/usr/bin/python3
"""What a machine with cgroup v2 and all controllers shows of limits. Runs inside it, as root.

Each of some sessions takes too much, beside one that goes on; prints what was seen as JSON.
"""

import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

FORK = """
import os
while True:
    try: os.fork()
    except OSError: pass
"""
EAT = """
hoard = []
while True: hoard.append(bytearray(b'x' * 1_000_000))
"""
EAT_BY_CHILD = f"""
import subprocess, sys, time
subprocess.run([sys.executable, '-c', {EAT!r}])
time.sleep(99)
"""
FILL = """
import time
try:
    with open('/dev/shm/big', 'wb', 0) as file:
        while file.write(bytes(1 << 20)): pass
except OSError: time.sleep(99)
"""
TAKES = {"processes": FORK, "memory": EAT, "memory of a child": EAT_BY_CHILD, "/dev/shm": FILL}
WRITE = "import os; open(os.environ['TMPDIR'] + '/mine', 'w').write('kept')"
READ = "import os; result = open(os.environ['TMPDIR'] + '/mine').read()"
SPIN = """
import time
begin, cpu = time.monotonic(), time.process_time()
while time.monotonic() < begin + 3: pass
result = (time.process_time() - cpu) / 3
"""


def sh(command: str) -> str:
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout


class Session:
    def __init__(self) -> None:
        argv = ["runuser", "-u", "alice", "--", "mcpwrap-connect", "probe"]
        self.stub = subprocess.Popen(argv, stdin=-1, stdout=-1, stderr=-1, text=True)
        self.ids = itertools.count(1)
        self.ask("result = 1")

    def send(self, code: str) -> None:
        params = {"name": "run", "arguments": {"code": code}}
        call = {"jsonrpc": "2.0", "id": next(self.ids), "method": "tools/call", "params": params}
        print(json.dumps(call), file=self.stub.stdin, flush=True)

    def ask(self, code: str) -> Any:
        self.send(code)
        assert self.stub.stdout
        return json.loads(self.stub.stdout.readline())["result"]["told"]

    def end(self) -> list[Any]:
        err = self.stub.communicate(timeout=60)[1]
        return [self.stub.returncode, err.strip()]


def taken(code: str, other: Session) -> list[Any]:
    """Return how a session that takes too much ended, and what the other one still has."""
    session = Session()
    session.send(code)
    return [*session.end(), other.ask(READ)]


def ceilings() -> dict[str, str]:
    """Return what the kernel holds a session to."""
    group = sh("systemctl show -P ControlGroup mcpwrap@probe.service").strip()
    leaf = next(Path(f"/sys/fs/cgroup{group}").glob("s-*/agent-*")).parent
    files = ("memory.max", "memory.swap.max", "pids.max", "cpu.max")
    return {file: (leaf / file).read_text().strip() for file in files}


def main() -> None:
    sh("useradd -m -s /bin/bash -G mcpwrap alice")
    sh("mcpwrap apply")
    other = Session()
    other.ask(WRITE)
    seen = {what: taken(code, other) for what, code in TAKES.items()}
    seen["share of a processor"] = other.ask(SPIN)
    print(
        json.dumps(
            {
                **seen,
                "ceilings": ceilings(),
                "status": sh("mcpwrap status probe --json"),
                "end": other.end(),
            }
        )
    )


if __name__ == "__main__":
    main()
