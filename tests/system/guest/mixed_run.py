"""Code of the runs of a load: each notes its account, its times and what it has found.

`run(KIND, NUMBER)` is appended to this text, which is then executed in a run slot.
"""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import shared_memory
from pathlib import Path

FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/out", "/run/mcpwrap-job")
OWN_PROCESSES = 2  # the first one, and its run supervisor


def found() -> list[str]:
    """Return what another run has left here: files, processes, IPC objects."""
    files = [str(path) for folder in FOLDERS for path in Path(folder).iterdir()]
    pids = [path.name for path in Path("/proc").glob("[0-9]*")]
    shared = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    more = pids if len(pids) > OWN_PROCESSES else []
    return [path for path in files if path != "/tmp/main.py"] + more + shared


def note(**facts: object) -> None:
    """Write facts as a line of standard error."""
    print(json.dumps(facts), file=sys.stderr)


def compute(number: int) -> None:
    """Print a number that no other run prints."""
    print(number * number)


def carry(number: int) -> None:
    """Copy a file from /in to /out."""
    content = Path("/in/data").read_bytes()
    Path(f"/out/copy-{number}").write_bytes(content)
    print(hashlib.sha256(content).hexdigest())


def litter(number: int) -> None:
    """Leave files, shared memory and a daemon."""
    for folder in FOLDERS:
        Path(folder, f"left-{number}").write_text("left")
    shared_memory.SharedMemory(f"shared-{number}", create=True, size=4096)
    daemon = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
    subprocess.Popen([sys.executable, "-c", daemon], start_new_session=True)
    print("left")


def linger(number: int) -> None:
    """Leave the same, and take a moment."""
    litter(number)
    time.sleep(0.3)


def pause(_number: int) -> None:
    """Take longer than the end of another run."""
    time.sleep(2)


def wait(number: int) -> None:
    """Leave a daemon, and never end."""
    litter(number)
    threading.Event().wait()


def fail(number: int) -> None:
    """End with a status of its own."""
    sys.exit(1 + number % 100)


def hoard(_number: int) -> None:
    """Take memory until the limit."""
    hoarded: list[bytes] = []
    while True:
        hoarded.append(b"x" * 1_000_000 + b"%d" % len(hoarded))


def spin(_number: int) -> None:
    """Use processor time until the time limit."""
    while True:
        pass


def pour(_number: int) -> None:
    """Print until the limit of output."""
    while True:
        print("x" * 999)


def fork(_number: int) -> None:
    """Start processes until the limit; print how many there were, with this one."""
    count = 1
    try:
        while count < 1000:
            if os.fork() == 0:
                time.sleep(1000)
            count += 1
    except OSError:
        print(count)


RUNS: dict[str, Callable[[int], None]] = {
    each.__name__: each
    for each in (compute, carry, litter, linger, pause, wait, fail, hoard, spin, pour, fork)
}


def run(kind: str, number: int) -> None:
    """Execute one run of this kind."""
    note(uid=os.getuid(), began_s=time.monotonic(), found=found())
    try:
        RUNS[kind](number)
    finally:
        note(ended_s=time.monotonic())
