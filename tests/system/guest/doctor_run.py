"""`mcpwrap doctor`, and the wrappers that are up meanwhile. Runs inside the machine, as root."""

import signal
import subprocess
import sys
import time
from contextlib import suppress

from tests.system.guest.processes import TREES

_LOOK_EVERY_S = 0.02


def watched(interrupted_at: int, *names: str) -> tuple[int, int, str, list[str]]:
    """Run it; return its status, the most wrappers at once, its output, and the wrappers left.

    It gets SIGINT once `interrupted_at` wrappers are up; 0 is never.
    """
    argv = ["/usr/bin/mcpwrap", "doctor", *names]
    most = 0
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=sys.stderr, text=True) as doctor:
        assert doctor.stdout
        while doctor.poll() is None:
            now = len(up())
            if now >= interrupted_at > most:
                doctor.send_signal(signal.SIGINT)  # to it only, and not to its children
            most = max(most, now)
            time.sleep(_LOOK_EVERY_S)
        said = doctor.stdout.read()
    return doctor.returncode, most, said, up()


def up() -> list[str]:
    """Return the servers whose supervisor runs."""
    found = set()
    for tree in TREES:
        for group in tree.glob("system.slice/*/mcpwrap@*.service/supervisor"):
            with suppress(OSError):  # it is just ending
                if (group / "cgroup.procs").read_text():
                    found.add(group.parent.name.removeprefix("mcpwrap@").removesuffix(".service"))
    return sorted(found)
