"""Confinement of a server of `mcpwrap run`. Runs inside the machine, in that server."""

import os
from pathlib import Path
from typing import Any


def seen(variables: list[str], hidden: str) -> dict[str, Any]:
    """Return account, filters, which of these variables it has, and whether it sees a path."""
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines)
    return {
        "account": os.getuid(),
        "confined": [status["NoNewPrivs"].strip(), status["Seccomp"].strip()],
        "environment": sorted(set(variables) & set(os.environ)),
        "keys": os.path.lexists(hidden),
    }
