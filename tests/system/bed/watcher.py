"""Run a command as somebody, and see who runs a program meanwhile. Inside the machine, as root.

This file is itself sent into the machine, with a JSON object as its argument: `user`, `command`,
`program`, which is a word of a command line, and `secret`. It prints as JSON the status and the
output of the command, and what the kernel says of each process that ran the program meanwhile: the
accounts of its UIDs, and whether the secret is in its environment.
"""

import json
import os
import pwd
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

LOOK_S = (
    0.002  # between two looks; the shortest of what is looked for lives some hundred times as long
)


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


def look(program: str, secret: str) -> dict[str, tuple[frozenset[str], bool]]:
    """Return by process who runs the program now: real, effective, saved and file system's UID."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            if program.encode() not in (process / "cmdline").read_bytes().split(b"\0"):
                continue
            uids = re.findall(r"^Uid:(.*)", (process / "status").read_text(), re.MULTILINE)
            environment = (process / "environ").read_bytes()
            if environment:  # otherwise it is ending
                names = frozenset(pwd.getpwuid(int(uid)).pw_name for uid in uids[0].split())
                found[process.name] = (names, secret.encode() in environment)
    return found


def main() -> None:
    asked = json.loads(sys.argv[1])
    seen: dict[str, tuple[frozenset[str], bool]] = {}
    with tempfile.TemporaryFile() as output:
        process = started(asked["user"], asked["command"], output)
        while process.returncode is None:
            seen |= look(asked["program"], asked["secret"])
            with suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_S)
        output.seek(0)
        servers = [[sorted(names), has_secret] for names, has_secret in seen.values()]
        print(json.dumps([process.returncode, output.read().decode(), servers]))


if __name__ == "__main__":
    main()
