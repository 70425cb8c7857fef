"""Authentication by polkit of the person behind a process, by password: pkcheck(1)."""

import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from mcpwrap.core.text.sanitise import visible

ACTION = "org.mcpwrap.approve"
_MAX_DETAIL_CHARS = 120  # it is a line in a window


@dataclass(frozen=True, slots=True)
class Pkcheck:
    """The program, and the timeout for a person's answer."""

    path: str = "/usr/bin/pkcheck"
    patience_s: float = 25.0  # whoever asked the gate waits for 30 s


def is_authorised(
    pid: int,
    process_start: int,
    uid: int,
    details: Mapping[str, str],
    pkcheck: Pkcheck = Pkcheck(),
) -> bool:
    """Say whether the person of this process has given the password of its account, just now.

    `process_start` is field 22 of proc_pid_stat(5), by the word of whoever asks: polkitd compares
    it, and refuses for another, so that a PID that was used again proves nothing. `details` are
    what the window says: `tool`, `server` and `agent`. Without polkit, or after its
    patience, it is nobody.

    Only root and the account in the action's annotation `org.freedesktop.policykit.owner` may ask.
    It blocks, and wants the ends of its children for itself: it is for a process of its own.
    """
    # Where others take them, subprocess finds none, and believes that all went well.
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
    except (OSError, subprocess.TimeoutExpired):  # whose end takes the window away
        return False
    return done.returncode == 0
