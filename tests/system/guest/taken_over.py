"""Attacks of a gate's process that was taken over. Runs inside the machine, in the process itself.

Behind its filter the process opens no file, so that the story inserts this text into the code of
the gate, instead of a line of its own.
"""

import json
import os
import socket
import threading
from typing import Any

# Effect of each attack, and its outcome without the filter.
ATTACKS = {
    "read a file": "open('/etc/passwd').read(1)",
    "write a file": "open('/run/mcpwrap/x', 'w')",  # the unit forbids it already
    "read the policy": "open('/etc/mcpwrap/policy.yaml').read(1)",
    "look at processes": "os.listdir('/proc')",
    "read its own memory": "open('/proc/self/mem', 'rb')",
    "make a unix socket": "socket.socket(socket.AF_UNIX)",
    "reach another server": "socket.socket(1, 5).connect('/run/mcpwrap/sock/other.sock')",
    "reach the gate": "socket.socket(1, 5).connect('/run/mcpwrap/gate.sock')",
    "make a network socket": "socket.socket(socket.AF_INET)",
    "make a pair": "socket.socketpair()",
    "fork": "os.fork() or os._exit(0)",
    "run a program": "os.posix_spawn('/bin/true', ['true'], {})",
    "make a thread": "threading.Thread(target=int).start()",
    "signal the monitor": "os.kill(os.getppid(), 0)",
    "duplicate what it has": "os.dup(2)",
    "give it away": "socket.send_fds(self._monitor._socket, [b'T0' + bytes(17)], [2])",
    "put bytes away": "os.memfd_create('x')",
    "cut its audit off": "os.ftruncate(self._recorder._file._fd, 0)",
    "write over its audit": "os.pwrite(self._recorder._file._fd, b'x', 0)",
    "write to another socket": "self._journal._socket.sendto(b'a', '/run/systemd/journal/dev-log')",
}
NAMES = {"os": os, "socket": socket, "threading": threading}


def tell(told: dict[str, object]) -> None:
    """Log the outcome of the attempts, in the journal of the gate."""
    os.write(2, f"TRIED {json.dumps(told)}\n".encode())


def try_all(self: Any) -> None:
    """Try each attack, with `self` the judgement of the session."""
    told: dict[str, object] = {}
    for name, attack in ATTACKS.items():
        try:
            exec(attack, {**NAMES, "self": self})
            told[name] = "works"
        except (OSError, RuntimeError) as error:
            told[name] = getattr(error, "errno", None) or "refused"
    tell(told)


def change_a_policy(fd: int) -> None:
    """Try to change the policy that was handed out in this file, and look for another server's."""
    told: dict[str, object] = {}
    for name, attack in {"write": "os.pwrite(fd, b'x', 0)", "cut": "os.ftruncate(fd, 0)"}.items():
        try:
            exec(attack, {**NAMES, "fd": fd})
            told[name] = "works"
        except OSError as error:
            told[name] = error.errno
    told["others"] = b'"other"' in os.pread(fd, 100_000, 0)
    tell(told)
