"""Processes of mcpwrap, looked up for a fault. Runs in the machine as root."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.system.guest.soak.model import PROCESSES

PROC = Path("/proc")


class NothingToDoError(Exception):
    """Absence, at this moment, of the process or file that a fault needs."""


def sh(command: str, *, stdin: str = "") -> str:
    """Run a shell command, which must succeed; return its output."""
    done = subprocess.run(["sh", "-c", command], input=stdin, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.returncode} {done.stderr.strip()[-300:]}")
    return done.stdout


def show(unit: str, name: str) -> str:
    """Return a property of a unit."""
    return sh(f"systemctl show -P {name} '{unit}'").strip()


def main_pid(unit: str) -> int:
    """Return the main process of a unit."""
    pid = int(show(unit, "MainPID") or 0)
    if not pid:
        raise NothingToDoError(f"{unit} does not run")
    return pid


def one_of(units: str, draw: int) -> str:
    """Return one of the running units of a pattern."""
    listed = sh(f"systemctl list-units --no-legend --plain --state=active '{units}'")
    return drawn([line.split()[0] for line in listed.splitlines()], draw)


def drawn(found: list[str], draw: int) -> str:
    """Return one of these."""
    if not found:
        raise NothingToDoError("there is none")
    return sorted(found)[draw % len(found)]


def children_of(pid: int) -> list[str]:
    """Return the children of a process."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def of_sessions(server: str) -> list[str]:
    """Return the processes in the sessions of a server."""
    wanted = re.compile(rf"/mcpwrap@{server}\.service/s-")
    return [pid for pid, groups in groups_by_pid() if wanted.search(groups)]


def stubs() -> list[str]:
    """Return the stubs of all agents."""
    return [pid for pid, words in _command_lines() if "/usr/bin/mcpwrap-connect" in words]


def of_agents(draw: int) -> int:
    """Return one of the processes of the load."""
    return main_pid(f"soak-{drawn(list(PROCESSES), draw)}.service")


def groups_by_pid() -> Iterator[tuple[str, str]]:
    """Yield each process with its control groups."""
    for folder in PROC.glob("[0-9]*"):
        try:
            yield folder.name, (folder / "cgroup").read_text()
        except OSError:
            continue  # it has ended


def _command_lines() -> Iterator[tuple[str, list[str]]]:
    for folder in PROC.glob("[0-9]*"):
        try:
            yield folder.name, (folder / "cmdline").read_text(errors="replace").split("\0")
        except OSError:
            continue
