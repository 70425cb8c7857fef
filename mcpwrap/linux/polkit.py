"""Authentication by polkit of the user of a process, by password: pkcheck(1)."""

import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from mcpwrap.core.text.sanitise import visible

ACTION = "org.mcpwrap.approve"
_MAX_DETAIL_CHARS = 120  # it is a line in a window


@dataclass(frozen=True, slots=True)
class Pkcheck:
    """Path of pkcheck(1), and the timeout for a person's answer."""

    path: str = "/usr/bin/pkcheck"
    patience_s: float = 25.0  # the client of the approval socket waits for 30 s


def is_authorised(
    pid: int,
    process_start: int,
    uid: int,
    details: Mapping[str, str],
    pkcheck: Pkcheck = Pkcheck(),
) -> bool:
    """Return whether the user of this process has given the password of its account, just now.

    `process_start` is field 22 of proc_pid_stat(5), as the approver's program states it: polkitd
    compares it with the process and refuses another one, so that a reused PID proves nothing.
    `details` are shown in the window: `tool`, `server` and `agent`. Without polkit, or after the
    timeout, it returns False.

    Only root and the account in the action's annotation `org.freedesktop.policykit.owner` may call
    polkit. It blocks, and must reap its children itself: it is for a process of its own.
    """
    # If other code reaps the child, subprocess finds no status and reports success.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    argv = [pkcheck.path, "--action-id", ACTION, "--process", f"{pid},{process_start},{uid}"]
    for key, value in details.items():
        shown = visible(value).replace("\n", " ").replace("\t", " ")
        argv += ["--detail", key, shown[:_MAX_DETAIL_CHARS] or "-"]
    try:
        done = subprocess.run(
            [*argv, "--allow-user-interaction"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            timeout=pkcheck.patience_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):  # at the end of pkcheck polkit closes its window
        return False
    return done.returncode == 0
