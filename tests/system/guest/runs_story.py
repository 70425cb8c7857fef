"""Limits of runs of code on a machine with cgroup v2 and all controllers. Runs inside it, as root.

One session of alice with a Python server of two run slots; the codes of the runs are in `CODES`.
"""

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.system.guest.stub_session import PATIENCE_S, StubSession

SLOTS = "/sys/fs/cgroup/mcpwrap.slice/mcpwrap-job.slice"
FILES = ("memory.max", "memory.swap.max", "pids.max", "cpu.max")
GREEDY = "held = []\nwhile True: held.append(bytearray(b'x' * 1_000_000))"
SPIN = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass"
CODES = {
    "small": "print(1)",
    "memory": f"print('begun')\n{GREEDY}",
    "memory of a child": (
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', {GREEDY!r}]).returncode"
    ),
    "much memory": "len(b'x' * (90 << 20))",
    "too much memory": "len(b'x' * (200 << 20))",
    "tasks": (
        "import os, time\n"
        "made = 0\n"
        "try:\n"
        "    while made < 100:\n"
        "        if os.fork() == 0: time.sleep(60)\n"
        "        made += 1\n"
        "except BlockingIOError: pass\n"
        "refusals = open('/sys/fs/cgroup/pids.events').readline().split()[1]\n"
        "made, int(refusals)"
    ),
    "fork bomb": (
        "import os\n"
        "while True:\n"
        "    try: os.fork()\n"
        "    except OSError: pass"
    ),
    "processor": SPIN,
    "sleep": "import time\ntime.sleep(4)\nprint('undisturbed')",
}  # fmt: skip


def sh(command: str) -> str:
    """Run a shell command, which must succeed, and return its output."""
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout


class RunSession(StubSession):
    """Session of alice with the Python server."""

    def begin(self, name: str, **more: Any) -> int:
        """Send one of the codes; return the id of the call."""
        arguments = {"code": CODES[name], **more}
        return self.request("tools/call", {"name": "run_python", "arguments": arguments})

    def next_result(self) -> tuple[int, dict[str, Any]]:
        """Return the id of the call that is answered next, and its result."""
        response = self.receive()
        assert "structuredContent" in response.get("result", {}), response
        return response["id"], response["result"]["structuredContent"]

    def run(self, name: str, **more: Any) -> dict[str, Any]:
        """Run one of the codes, and return its result."""
        self.begin(name, **more)
        return self.next_result()[1]

    def run_at_once(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Run codes at the same time; return their results in the order of the calls."""
        calls = [self.begin(name) for name in names]
        found = dict(self.next_result() for _ in calls)
        return [found[call] for call in calls]


def begin() -> RunSession:
    """Make alice's account, and open her session."""
    sh("useradd -m -s /bin/bash -G mcpwrap alice")
    sh("mcpwrap apply")
    return RunSession("mcpwrap-connect python")


def limits() -> dict[str, str]:
    """Return the limits of a run in the kernel, from a slot that was started in advance."""
    give_up_at_s = time.monotonic() + PATIENCE_S
    while not (groups := list(Path(SLOTS).glob("mcpwrap-job@*.service"))):
        assert time.monotonic() < give_up_at_s, "no slot is started in advance"
        time.sleep(0.1)
    return {file: (groups[0] / file).read_text().strip() for file in FILES}


def lives() -> dict[str, str]:
    """Return the main processes of worker and server, which a run must not end."""
    units = ("mcpwrap-worker.service", "mcpwrap@python.service")
    return {unit: sh(f"systemctl show -P MainPID {unit}").strip() for unit in units}


@contextmanager
def slots_with(*lines: str) -> Iterator[None]:
    """Have these directives in the units of the run slots, for the time of the block."""
    folder = Path("/run/systemd/system/mcpwrap-job@.service.d")
    folder.mkdir(parents=True)
    file = folder / "99-story.conf"
    file.write_text("\n".join(["[Service]", *lines, ""]))
    renew = "systemctl daemon-reload; systemctl stop 'mcpwrap-job@*.service'"
    sh(renew)
    try:
        yield
    finally:
        file.unlink()
        folder.rmdir()
        sh(renew)


def play(within_s: float) -> dict[str, Any]:
    """Exceed each limit of runs beside one that goes on, and then without the limit."""
    session = begin()
    seen: dict[str, Any] = {"small": session.run("small"), "before": lives()}
    seen["memory"], seen["beside memory"] = session.run_at_once(["memory", "sleep"])
    for name in ("memory of a child", "much memory", "too much memory", "tasks"):
        seen[name] = session.run(name)
    seen["fork bomb"] = session.run("fork bomb", timeout=2)
    seen["limits"] = limits()
    seen["processor"] = session.run_at_once(["processor", "processor"])
    seen["after"] = lives()
    seen["small again"] = session.run("small")
    with slots_with("LimitNPROC=infinity"):
        seen["tasks, by TasksMax alone"] = session.run("tasks")
    with slots_with("LimitNPROC=infinity", "TasksMax=infinity"):
        seen["tasks, without"] = session.run("tasks")
    with slots_with("MemoryMax=infinity"):
        seen["too much memory, without"] = session.run("too much memory")
    with slots_with("CPUQuota="):
        seen["processor, without"] = session.run("processor")
    return seen | {"end": session.end(within_s)}
