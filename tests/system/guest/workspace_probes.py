"""Actions of a server in its agent's project: git, and attacks. Runs in the machine, as it."""

import errno
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path


def commit(project: str) -> str:
    """Commit a file; return the complaints of git."""
    run = "git add readme.txt && git commit -qm by-a-server"
    done = subprocess.run(run, shell=True, cwd=project, capture_output=True, text=True)
    return done.stderr


def write_each(project: str, names: Iterable[str]) -> dict[str, str]:
    """Write to each of these files, or make it; return the error of those that refuse."""
    refused = {}
    for name in names:
        path = Path(project, name)
        try:
            with path.open("a") as file:
                file.write("# written\n")
        except OSError as error:
            refused[name] = errno.errorcode[error.errno or 0]
    return refused


def flash(path: str) -> None:
    """Make a folder and remove it, within less than one check interval of the supervisor."""
    Path(path).mkdir()
    Path(path).rmdir()


def redirect_git(project: str) -> str:
    """Point git at a configuration of the server's own, by `.git/commondir`."""
    copy = "mkdir -p evil/hooks; cp -r .git/objects .git/refs evil"
    subprocess.run(copy, shell=True, cwd=project)
    Path(project, "evil/config").write_text("[core]\n\tfsmonitor = touch ../fired; false\n")
    Path(project, ".git/commondir").write_text("../evil\n")
    return "done"


def run_a_program(project: str) -> tuple[str, bool, bool]:
    """Run `tool` of the project; return its output, and whether `nosuid` and `nodev` hold."""
    at = os.statvfs(project)
    printed = subprocess.run([f"{project}/tool"], capture_output=True, text=True).stdout
    return printed, bool(at.f_flag & os.ST_NOSUID), bool(at.f_flag & os.ST_NODEV)
