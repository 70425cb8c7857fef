"""Environment of this machine: hardware, WSL2, or a container; each has fixes of its own."""

import platform
import subprocess
from enum import Enum, auto

_DETECT_VIRT = ("/usr/bin/systemd-detect-virt", "--container")
_TIMEOUT_S = 10


class Environment(Enum):
    """Environment that decides which mechanisms of the kernel a machine has."""

    MACHINE = auto()  # with a kernel of its own, virtual or not
    WSL = auto()
    CONTAINER = auto()


def found() -> Environment:
    """Return the environment of this process.

    Source: systemd-detect-virt(1). The kernel of WSL has its name in /proc/sys/kernel/osrelease.
    """
    return judged(platform.release(), _container())


def judged(release: str, container: str) -> Environment:
    """Return the environment, by the kernel's release and the kind of container."""
    if "microsoft" in release.lower() or "wsl" in release.lower():
        return Environment.WSL
    return Environment.CONTAINER if container not in {"", "none"} else Environment.MACHINE


def _container() -> str:
    try:
        done = subprocess.run(
            _DETECT_VIRT, stdout=subprocess.PIPE, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):  # a machine without systemd may lack the program
        return ""
    return done.stdout.strip()
