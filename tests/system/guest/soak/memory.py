"""Memory of our daemons over time, and the load of the machine. Runs in the machine as root.

Its argument: the file for the samples. A sample is one line: the time, and the proportional set
size in bytes by daemon (proc(5), smaps_rollup). It ends when `model.STOP` exists.
"""

import json
import os
import re
import sys
import time
from collections import Counter
from pathlib import Path

from tests.system.guest.soak import processes
from tests.system.guest.soak.model import STOP
from tests.system.guest.soak.processes import NothingToDoError, main_pid

EVERY_S = 5.0
_UNIT = re.compile(r"/(mcpwrap[^/\n]*\.service)(/supervisor)?")
_NAMES = (
    ("mcpwrap-squid", "squid"),
    ("mcpwrap-front", "front"),
    ("mcpwrap-http@", "listeners"),
    ("mcpwrap-watch", "watch"),
)


def name_of(groups: str, *, is_monitor: bool) -> str:
    """Return the daemon of a process, by its control groups; nothing if it belongs to none."""
    found = _UNIT.search(groups)
    if found is None:
        return ""
    unit, leaf = found[1], found[2]
    if unit == "mcpwrap-gate.service":
        return "gate: monitor" if is_monitor else "gate: sessions"
    if unit.startswith("mcpwrap@"):
        return "supervisors" if leaf else "servers"
    return next((name for start, name in _NAMES if unit.startswith(start)), "")


def sample() -> dict[str, int]:
    """Return the memory by daemon."""
    try:
        monitor = str(main_pid("mcpwrap-gate.service"))
    except NothingToDoError:
        monitor = ""
    found: Counter[str] = Counter()
    for pid, groups in processes.groups_by_pid():
        if name := name_of(groups, is_monitor=pid == monitor):
            found[name] += _pss_bytes(pid)
    return dict(found)


def _pss_bytes(pid: str) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0  # it has ended
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def main() -> None:
    with Path(sys.argv[1]).open("a") as file:
        while not STOP.exists():
            line = {"at_s": time.monotonic(), "load": os.getloadavg()[0], "bytes": sample()}
            print(json.dumps(line), file=file, flush=True)
            time.sleep(EVERY_S)


if __name__ == "__main__":
    main()
