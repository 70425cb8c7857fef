"""Daemons that ignore signals, and the wait for their end. Runs inside the machine."""

import os
import pwd
import re
import select
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def become_daemon() -> None:
    """Leave a daemon behind, as a server that ignores signals itself."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 100)
            while True:
                signal.pause()
        os._exit(0)
    os.wait()


def leave(call: str, argv: list[str]) -> None:
    """Start a server as an agent does, send it this call, and exit at its answer."""
    server = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert server.stdin
    assert server.stdout
    server.stdin.write(call.encode() + b"\n")
    server.stdin.flush()
    assert b"told" in server.stdout.readline()
    os._exit(0)


def await_end_of_all(account: str, within_s: float) -> list[str]:
    """Wait until the account has no process; return the command lines of those left."""
    uid, give_up_at = pwd.getpwnam(account).pw_uid, time.monotonic() + within_s
    while (left := _processes(uid)) and (remaining_s := give_up_at - time.monotonic()) > 0:
        _await_end(left[0], remaining_s)
    return [_command_line(pid) for pid in left]


def _processes(uid: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            status = (folder / "status").read_text()
            is_zombie = re.search(r"^State:\tZ", status, re.MULTILINE)
            if not is_zombie and re.search(rf"^Uid:\t{uid}\t", status, re.MULTILINE):
                found.append(int(folder.name))
    return found


def _await_end(pid: int, within_s: float) -> None:
    with suppress(ProcessLookupError):
        poll = select.poll()
        poll.register(os.pidfd_open(pid), select.POLLIN)
        poll.poll(within_s * 1000)


def _command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""
