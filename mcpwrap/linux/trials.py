"""Trying things for real, as another account: `mcpwrap doctor` believes no file."""

import os
import pwd
import subprocess
from dataclasses import dataclass

from mcpwrap.core.names import account_of
from mcpwrap.linux.systemd import properties
from mcpwrap.plan import paths

LIB = "/usr/lib/mcpwrap"
SETPRIV = "/usr/bin/setpriv"
NSENTER = "/usr/bin/nsenter"
_WAIT_S = 90
_MAX_LINE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a trial ended: its exit status, and the one line that it printed."""

    status: int
    line: str


def session(account: str, server: str) -> Outcome:
    """Open a session of `server` as an agent under `account` does. Status 0: it answered."""
    return _run_as(account, f"{LIB}/mcpwrap-try-session", server)


def reach(server: str, *what: str) -> Outcome:
    """Try one thing as a server would. Status 0: it worked; 10: it was refused; else nobody knows.

    Seen from inside the wrapper, if it runs. `what`: see `mcpwrap.as_wrapper.try_reach`.
    """
    unit, account = paths.service_unit(server), account_of(server)
    pid = properties([unit], ["MainPID"])[unit]["MainPID"]
    inside = [NSENTER, f"--target={pid}", "--mount", "--net", "--"] if pid != "0" else []
    entry = pwd.getpwnam(account)
    ids = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
    return _run([*inside, SETPRIV, *ids, "--", f"{LIB}/mcpwrap-try-reach", *what])


def _run_as(account: str, *argv: str) -> Outcome:
    """Run a program of ours with the rights of an account."""
    entry = pwd.getpwnam(account)
    groups = ",".join(map(str, os.getgrouplist(account, entry.pw_gid)))
    ids = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", f"--groups={groups}"]
    return _run([SETPRIV, *ids, "--", *argv])


def _run(argv: list[str]) -> Outcome:
    """Run it; what it prints is not to be trusted."""
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            timeout=_WAIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome(1, f"no end within {_WAIT_S} s")
    text = (done.stdout or done.stderr).decode(errors="replace").strip()
    lines = text.splitlines() or [f"status {done.returncode}"]
    line = lines[0] if done.stdout else lines[-1]
    return Outcome(done.returncode, "".join(filter(str.isprintable, line))[:_MAX_LINE_CHARS])
