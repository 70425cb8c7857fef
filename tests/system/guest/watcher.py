"""Processes that run a program while a command runs. Runs inside the machine, as root."""

import os
import pwd
import re
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

# Between two checks; the shortest-lived process that is sought lives some hundred times as long.
LOOK_S = 0.002
Seen = tuple[list[str], bool]


def watch(user: str, command: str, program: str, secret: str) -> tuple[int, str, list[Seen]]:
    """Run a command as `user`; return status, output, and the processes of `program` meanwhile.

    `program` is a word of a command line. Of each process it is what the kernel reports: the
    accounts of its UIDs, and whether the secret is in its environment.
    """
    seen: dict[str, Seen] = {}
    with tempfile.TemporaryFile() as output:
        process = started(user, command, output)
        while process.returncode is None:
            seen |= look(program, secret)
            with suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_S)
        output.seek(0)
        return process.returncode, output.read().decode(), list(seen.values())


def started(user: str, command: str, output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a shell command as an account, in its home, with its groups."""
    account = pwd.getpwnam(user)
    return subprocess.Popen(
        ["sh", "-c", command],
        stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=account.pw_dir,
        user=account.pw_uid, group=account.pw_gid,
        extra_groups=os.getgrouplist(user, account.pw_gid),
        env={"HOME": account.pw_dir, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
    )  # fmt: skip


def look(program: str, secret: str) -> dict[str, Seen]:
    """Return the program's processes now, with real, effective, saved and file system's UID."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            if program.encode() not in (process / "cmdline").read_bytes().split(b"\0"):
                continue
            uids = re.findall(r"^Uid:(.*)", (process / "status").read_text(), re.MULTILINE)
            environment = (process / "environ").read_bytes()
            if environment:  # otherwise it is ending
                names = sorted({pwd.getpwuid(int(uid)).pw_name for uid in uids[0].split()})
                found[process.name] = (names, secret.encode() in environment)
    return found
