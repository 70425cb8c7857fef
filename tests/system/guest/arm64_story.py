"""Installation of the package on a machine of its own architecture. Runs inside it, as root."""

import os
import time
from typing import Any

from tests.system.guest.limits_story import Session, sh

PACKAGE = "/root/mcpwrap.deb"
# Each as a server sees it: its account, no privilege to gain, and a filter of system calls.
LOOK = """
import os
lines = dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines())
result = [os.uname().machine, lines['NoNewPrivs'], lines['Seccomp']]
"""
MAKE_SOCKET = "import socket; socket.socket(socket.AF_UNIX)"
MAKE_PAIR = "import socket; result = len(socket.socketpair())"


def play() -> dict[str, Any]:
    """Install the package by dpkg, apply a configuration, and hold a session."""
    seconds: dict[str, float] = {}

    def timed(name: str, command: str) -> str:
        began_s = time.monotonic()
        out = sh(command)
        seconds[name] = round(time.monotonic() - began_s, 1)
        return out

    timed("dpkg", f"dpkg -i {PACKAGE}")
    sh("useradd -m -s /bin/bash -G mcpwrap alice")
    timed("apply", "mcpwrap apply")
    began_s = time.monotonic()
    session = Session()
    seconds["session"] = round(time.monotonic() - began_s, 1)
    return {
        "architecture": [os.uname().machine, sh("dpkg-query -Wf '${Architecture}' mcpwrap")],
        "version": sh("mcpwrap --version").strip(),
        "server": session.ask(LOOK),
        "refused": session.ask(MAKE_SOCKET),
        "permitted": session.ask(MAKE_PAIR),
        "end": session.end(60),
        "nothing to do": timed("apply again", "mcpwrap apply"),
        "failed units": sh("systemctl --failed --no-legend"),
        "seconds": seconds,
    }
